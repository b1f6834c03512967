"""The controller of namespaces: furnishes those that live, empties those that go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

from konverge.cache import CacheOptions, Event
from konverge.client import Client
from konverge.controller import Controller, controller_for
from konverge.errors import KonvergeError, NotFound
from konverge.k8s.core.v1 import ConfigMap, Namespace, NamespaceStatus, ServiceAccount
from konverge.objects import Key, Kind, kind_of, to_wire, wall_clock
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.clock import Clock, utc_now, truncate_to_seconds
from konverge_cluster.namespaces.conditions import Findings, conditions_after
from konverge_cluster.namespaces.defaults import ACCOUNT, ROOT_CA, furnish
from konverge_cluster.namespaces.emptying import empty
from konverge_cluster.status_writes import controller_client, write_status

__all__ = ["NamespaceReconciler", "namespace_controllers"]

_FINALIZER: Final = "kubernetes"
_PODS_AGAIN_AFTER: Final = 1.0


class NamespaceReconciler(Reconciler[Namespace]):
    """Keeps what every namespace has, and empties those that are being deleted.

    A namespace goes when a look found it empty: then it loses the finalizer of its own kind. What holds it up stands
    in its conditions. Errors are written there first and raised then, so that it is tried again.
    """

    reconcile_terminating: ClassVar[bool] = True

    def __init__(self, clock: Clock, root_ca: Callable[[], str]) -> None:
        self._clock = clock
        self._root_ca = root_ca

    async def reconcile(self, obj: Namespace, ctx: Context) -> Result | None:
        """Furnish a namespace, or empty it."""
        client = controller_client(ctx).without_warnings()  # what is deprecated is in namespaces, too
        if obj.metadata.deletion_timestamp is None:
            await furnish(client, obj.name, self._root_ca())
            return None
        if not obj.spec.finalizers:
            return None
        now = utc_now(self._clock)
        findings = await empty(client, obj, now)
        status = NamespaceStatus(
            phase="Terminating", conditions=conditions_after(findings, obj.status.conditions, truncate_to_seconds(now))
        )
        obj = await write_status(ctx, obj, status)
        if findings.is_empty:
            await _let_go(client, obj)
            return None
        return _again(findings)


def _again(findings: Findings) -> Result:
    if findings.problems:
        raise KonvergeError("; ".join(findings.problems))
    after = _PODS_AGAIN_AFTER if findings.pods_remain else findings.estimate / 2 + 1
    return Result.requeue(after, reason="some content remains in the namespace")


async def _let_go(client: Client, namespace: Namespace) -> None:
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", **to_wire(namespace)}
    body["spec"] = {"finalizers": [one for one in namespace.spec.finalizers or () if one != _FINALIZER]}
    try:
        await client.write_subresource(namespace, "finalize", body, method="PUT")
    except NotFound:
        return


def _to_namespace(event: Event) -> Iterable[Key]:
    return (Key("", event.key.namespace),)


def _only(name: str) -> CacheOptions:
    return CacheOptions(metadata_only=True, fields=f"metadata.name={name}")


def namespace_controllers(
    *, root_ca: Callable[[], str] = str, clock: Clock = wall_clock
) -> tuple[Controller[Any], ...]:
    """Give the controller of namespaces.

    `root_ca` gives the certificate, as PEM, that pods shall trust the API server by; `clock` is the wall clock of the
    cluster, in seconds.
    """
    builder = controller_for(Namespace).named("namespace-controller")
    builder.watches(ServiceAccount, _to_namespace, options=_only(ACCOUNT))
    builder.watches(ConfigMap, _to_namespace, options=_only(ROOT_CA))
    builder.needs(kind_of(Namespace), "update", subresource="finalize")
    everything = Kind("*", "*", "*", "*")
    builder.needs(everything, "list", "delete", "deletecollection")
    builder.needs(ServiceAccount, "create").needs(ConfigMap, "create", "patch")
    return (builder.build(NamespaceReconciler(clock, root_ca)),)
