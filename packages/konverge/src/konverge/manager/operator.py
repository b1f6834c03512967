"""An operator as a value: its parts, for every command that works on an operator.

operator = Operator(name="webapp-operator", kinds=((WebApp, WebAppV1Beta1),), controllers=controllers())
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from konverge.client import Client, ClientConfig
from konverge.controller import EVENTS, LEASES, Controller, Permission
from konverge.manager.manager import Manager, require_controller
from konverge.manager.runnables import OpenShared, Runnable, RunnableFunction
from konverge.manager.webhook_serving import WebhookServing
from konverge.objects import Key, Unstructured
from konverge.objects.names import dns_label_errors
from konverge.schema import CustomResource, crd_for, definition_of

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from konverge.webhooks import Address, AdmissionWebhook, ConversionWebhook

__all__ = ["Operator"]


ImageTable: TypeAlias = Path | Callable[[], Iterable[Any]]
"""Local images of process nodes: a YAML file, or a function that returns `konverge_cluster.processes.LocalImage`s."""


_JOINED = ("controllers", "kinds", "webhooks", "metrics", "monitoring", "runnables", "shared", "images")
"""The parts that a combined operator has of each of its operators."""


class _DefaultKinds(tuple[Any, ...]):
    """The default of `kinds`: the custom resources that the controllers reconcile."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class Operator:
    """The parts of an operator.

    `name` is also the name of its field manager, its lease and the objects of its deployment. `kinds` are its custom
    resources: for each kind the class, or a tuple with the class of each version; by default the custom resources that
    its controllers reconcile. `samples` are example manifests, `metrics` are metrics of the operator itself.
    `monitoring` are files that `konverge manifests` installs: PrometheusRules (.yaml) and Grafana dashboards (.json).
    `runnables` are async functions that run on the leader, or `Runnable(function, leader_only=False)`. `shared` are
    functions that open what reconcilers and runnables get with `ctx.shared(type)`. `images` are tables of local images,
    for `konverge dev --run`; a function is only called there, so it may import what production lacks.

    Raises: ValueError for a name that is not a DNS label, TypeError for a part of the wrong type.
    """

    name: str
    controllers: tuple[Controller[Any], ...]
    kinds: tuple[type[CustomResource[Any, Any]] | tuple[type[CustomResource[Any, Any]], ...], ...] = field(
        default_factory=_DefaultKinds
    )
    webhooks: tuple[AdmissionWebhook[Any] | ConversionWebhook, ...] = ()
    samples: tuple[Path, ...] = ()
    metrics: tuple[Collector, ...] = ()
    monitoring: tuple[Path, ...] = ()
    runnables: tuple[Runnable | RunnableFunction, ...] = ()
    shared: tuple[OpenShared, ...] = ()
    images: tuple[ImageTable, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or dns_label_errors(self.name):
            raise ValueError(
                f"name must be at most 63 lower-case letters, digits and '-', like 'webapp-operator': {self.name!r:.80}"
            )
        parts = ("controllers", "kinds", "webhooks", "samples", "metrics", "monitoring")
        for part in (*parts, "runnables", "shared", "images"):
            if not isinstance(getattr(self, part), tuple):
                raise TypeError(f"{part} is a tuple: write {part}=(one, two), and {part}=(one,) for a single one")
        for controller in self.controllers:
            require_controller(controller)
        if isinstance(self.kinds, _DefaultKinds):
            types = (one.type for one in self.controllers)
            found = (one for one in types if isinstance(one, type) and issubclass(one, CustomResource))
            object.__setattr__(self, "kinds", tuple(dict.fromkeys(found)))
        for kind in self.kinds:
            for version in kind if isinstance(kind, tuple) else (kind,):
                definition_of(version)
        runnables = (one if isinstance(one, Runnable) else Runnable(one) for one in self.runnables)
        object.__setattr__(self, "runnables", tuple(runnables))

    @classmethod
    def combine(cls, name: str, *operators: Operator) -> Operator:
        """Return an operator with the parts of several ones: they share a process, a manager and a service account.

        It has no samples, since `konverge dev` would create all of them at once.

        Raises: ValueError when two operators, or two of their controllers, have the same name; or both define a kind.
        """
        _check_distinct([("name", one.name, one.name) for one in operators])
        _check_distinct([("controller", each.name, one.name) for one in operators for each in one.controllers])
        _check_distinct([("CRD", each.name, one.name) for one in operators for each in one.crds()])
        joined = {part: tuple(each for one in operators for each in getattr(one, part)) for part in _JOINED}
        return cls(name=name, **joined)

    def manager(self, client: Client | ClientConfig | None = None, **options: Any) -> Manager:
        """Return a manager for this operator; `options` are those of `Manager`."""
        manager = Manager(client, name=self.name, **options)
        manager.add(*self.controllers)
        manager.export(*self.metrics)
        manager.share(*self.shared)
        for runnable in self.runnables:
            assert isinstance(runnable, Runnable)
            manager.add_runnable(runnable.function, leader_only=runnable.leader_only)
        return manager

    def serving(self, namespace: str, *, port: int = 9443, installation: str = "") -> WebhookServing:
        """Return how a cluster reaches its webhooks: with a managed certificate, as `manifests` sets it up.

        `installation` names the Service, the Secret and the configurations; it is the operator's name by default.
        """
        from konverge.webhooks import Address, BundleTarget, Webhooks, configurations_for

        name = installation or self.name
        address = Address(service=f"{name}-webhooks", namespace=namespace)
        converted = [crd for crd in self.crds(address) if "conversion" in crd["spec"]]
        targets = [*configurations_for(self.webhooks, address, name=name), *converted]
        return WebhookServing(
            hooks=Webhooks(*self.webhooks),
            port=port,
            service=Key(namespace, address.service),
            secret=Key(namespace, f"{name}-webhook-certificate"),
            targets=tuple(BundleTarget.of(one) for one in targets),
        )

    def crds(self, address: Address | None = None) -> list[Unstructured]:
        """Return the CRDs of its kinds; with `address` they name the conversion webhook, where there is one.

        Without `address` the server cannot convert: of a kind with a conversion webhook only the stored version is
        served. Otherwise the server would only change the apiVersion of an object, and drop what it does not know.
        """
        return [self._crd(one if isinstance(one, tuple) else (one,), address) for one in self.kinds]

    def permissions(self) -> tuple[Permission, ...]:
        """Return the permissions that it needs: for its controllers, its events and its lease."""
        needed = {one for controller in self.controllers for one in controller.permissions()}
        return tuple(sorted({*needed, *EVENTS, *LEASES}))

    def _crd(self, versions: tuple[type[CustomResource[Any, Any]], ...], address: Address | None) -> Unstructured:
        from konverge.webhooks import ConversionWebhook, conversion_for

        converting = [hook for hook in self.webhooks if isinstance(hook, ConversionWebhook) and hook.hub in versions]
        if not converting:
            return crd_for(*versions)
        if address is None:
            return _serve_stored_version(crd_for(*versions))
        return crd_for(*versions, conversion=conversion_for(converting[0], address))


def _check_distinct(parts: Iterable[tuple[str, str, str]]) -> None:
    """Check that no two operators have a part of the same name.

    Raises: ValueError that names both.
    """
    owners: dict[tuple[str, str], str] = {}
    for what, name, operator in parts:
        if (what, name) in owners:
            raise ValueError(f"{owners[what, name]} and {operator} cannot be combined: both have the {what} {name}")
        owners[what, name] = operator


def _serve_stored_version(crd: Unstructured) -> Unstructured:
    versions = [{**each, "served": each["served"] and each["storage"]} for each in crd["spec"]["versions"]]
    return Unstructured({**crd, "spec": {**crd["spec"], "versions": versions}})
