"""The reconciler of namespaces: creates the defaults of active ones, deletes the content of terminating ones."""

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
from konverge_cluster.clock import Clock, truncate_to_seconds, utc_now
from konverge_cluster.namespaces.conditions import DeletionResult, conditions_after
from konverge_cluster.namespaces.content_deletion import delete_content
from konverge_cluster.namespaces.defaults import ROOT_CA, SERVICE_ACCOUNT, create_defaults
from konverge_cluster.status_writes import controller_client, write_status

__all__ = ["NamespaceReconciler", "namespace_controllers"]

_FINALIZER: Final = "kubernetes"
_PODS_REQUEUE_AFTER: Final = 1.0


class NamespaceReconciler(Reconciler[Namespace]):
    """Creates the defaults of every namespace, and deletes the content of terminating ones.

    A namespace loses the finalizer of its kind when a pass finds it empty. Its conditions say what holds it up. Errors
    are written there first and raised afterwards, so that the pass is retried.
    """

    reconcile_terminating: ClassVar[bool] = True

    def __init__(self, clock: Clock, root_ca: Callable[[], str]) -> None:
        self._clock = clock
        self._root_ca = root_ca

    async def reconcile(self, obj: Namespace, ctx: Context) -> Result | None:
        """Create the defaults of a namespace, or delete its content."""
        client = controller_client(ctx).without_warnings()  # namespaces contain deprecated kinds, too
        if obj.metadata.deletion_timestamp is None:
            await create_defaults(client, obj.name, self._root_ca())
            return None
        if not obj.spec.finalizers:
            return None
        now = utc_now(self._clock)
        result = await delete_content(client, obj, now)
        status = NamespaceStatus(
            phase="Terminating", conditions=conditions_after(result, obj.status.conditions, truncate_to_seconds(now))
        )
        obj = await write_status(ctx, obj, status)
        if result.is_empty:
            await _finalize(client, obj)
            return None
        return _requeue(result)


def _requeue(result: DeletionResult) -> Result:
    if result.all_errors:
        raise KonvergeError("; ".join(result.all_errors))
    after = _PODS_REQUEUE_AFTER if result.pods_only else result.estimate / 2 + 1
    return Result.requeue(after, reason="some content remains in the namespace")


async def _finalize(client: Client, namespace: Namespace) -> None:
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
    """Return the controller of namespaces.

    `root_ca` returns the PEM certificate by which pods verify the API server; `clock` is the wall clock of the
    cluster, in seconds.
    """
    builder = controller_for(Namespace).named("namespace-controller")
    builder.watches(ServiceAccount, _to_namespace, options=_only(SERVICE_ACCOUNT))
    builder.watches(ConfigMap, _to_namespace, options=_only(ROOT_CA))
    builder.needs(kind_of(Namespace), "update", subresource="finalize")
    everything = Kind("*", "*", "*", "*")
    builder.needs(everything, "list", "delete", "deletecollection")
    builder.needs(ServiceAccount, "create").needs(ConfigMap, "create", "patch")
    return (builder.build(NamespaceReconciler(clock, root_ca)),)
