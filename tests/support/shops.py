"""A small application with a workflow, for tests: database, backend and search, frontend, and monitoring."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from konverge import Context, CustomResource, ObjectMeta, Spec, TerminalError
from konverge.controller import Controller
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.core.v1 import ConfigMap, Container, PodSpec, PodTemplateSpec
from konverge.k8s.meta.v1 import LabelSelector
from konverge.manager import Operator
from konverge.objects import AnyObject
from konverge.workflow import (
    Component,
    ComponentPhase,
    Configuration,
    DerivedPhase,
    Phases,
    Waiting,
    Workflow,
    WorkflowReconciler,
    WorkflowState,
    WorkflowStatus,
)


class Phase(StrEnum):
    PENDING = "Pending"
    CREATING = "Creating"
    RUNNING = "Running"
    DEGRADED = "Degraded"
    FAILED = "Failed"
    DELETING = "Deleting"


class ShopSpec(Spec):
    image: str = "app:1"
    monitoring: bool = True
    password: bool = True
    """Whether the frontend is configured."""
    notes: int = 1
    """How many ConfigMaps the backend has."""
    broken: str = ""
    """The component whose function raises."""
    settings: str = ""
    """Name of a ConfigMap with settings."""
    suspend: bool = False


class ShopStatus(WorkflowStatus):
    phase: Phase = Phase.PENDING


class Shop(CustomResource[ShopSpec, ShopStatus], group="example.com", version="v1"):
    """A shop."""


configuration: Configuration[Shop] = Configuration(
    config_maps=lambda shop: [shop.spec.settings] if shop.spec.settings else []
)


def deployment(name: str, image: str, annotations: dict[str, str] | None = None) -> Deployment:
    labels = {"app": name}
    pods = PodSpec(containers=[Container(name="main", image=image)])
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels, annotations=annotations or {}), spec=pods)
    spec = DeploymentSpec(selector=LabelSelector(match_labels=labels), template=template)
    return Deployment(metadata=ObjectMeta(name=name), spec=spec)


def _component(name: str) -> Any:
    async def objects(shop: Shop, ctx: Context) -> list[AnyObject]:
        if shop.spec.broken == name:
            raise RuntimeError(f"{name} is broken")
        if shop.spec.broken == f"{name}!":
            raise TerminalError(f"{name} is broken for good")
        return [deployment(f"{shop.name}-{name}", f"{name}-{shop.spec.image}")]

    return objects


async def _backend(shop: Shop, ctx: Context) -> list[AnyObject]:
    found = await _component("backend")(shop, ctx)
    found[0].spec.template.metadata.annotations = await configuration.annotations(shop, ctx)
    notes = (ConfigMap(metadata=ObjectMeta(name=f"{shop.name}-note-{one}")) for one in range(shop.spec.notes))
    return [*found, *notes]


async def _frontend(shop: Shop, ctx: Context) -> list[AnyObject]:
    if not shop.spec.password:
        raise Waiting("PasswordMissing", "set spec.password")
    return [deployment(f"{shop.name}-frontend", f"frontend-{shop.spec.image}")]


async def _monitoring(shop: Shop, _ctx: Context) -> list[AnyObject]:
    return [ConfigMap(metadata=ObjectMeta(name=f"{shop.name}-dashboard"), data={"image": shop.spec.image})]


def derive_phase(_shop: Shop, state: WorkflowState) -> DerivedPhase[Phase]:
    if state.terminating:
        return DerivedPhase(Phase.DELETING, "Deleting")
    if state.within(ComponentPhase.FAILED):
        return DerivedPhase(Phase.FAILED, "ComponentFailed", state.message, warning=True)
    if state.ready:
        return DerivedPhase(Phase.RUNNING, "AllReady")
    if state.within(ComponentPhase.DEGRADED):
        return DerivedPhase(Phase.DEGRADED, "ReadinessLost", state.message, warning=True)
    return DerivedPhase(Phase.CREATING, "InProgress", state.message)


_ANY = frozenset({Phase.CREATING, Phase.RUNNING, Phase.DEGRADED, Phase.FAILED, Phase.DELETING})

phases = Phases(
    Phase.PENDING, {**{phase: _ANY - {phase} for phase in Phase}, Phase.DELETING: frozenset()}, derive_phase
)

workflow = Workflow(
    kind=Shop,
    components=(
        Component("database", _component("database"), kinds=(Deployment,)),
        Component("backend", _backend, kinds=(Deployment, ConfigMap), needs=("database",)),
        Component("search", _component("search"), kinds=(Deployment,), needs=("database",)),
        Component("frontend", _frontend, kinds=(Deployment,), needs=("backend",)),
        Component(
            "monitoring",
            _monitoring,
            kinds=(ConfigMap,),
            needs=("backend", "frontend"),
            enabled=lambda shop: shop.spec.monitoring,
        ),
    ),
    phases=phases,
    configuration=configuration,
    suspended=lambda shop: shop.spec.suspend,
    reports_foreign_fields_of=(Deployment,),
)


class ShopReconciler(WorkflowReconciler[Shop]):
    finalizer = "example.com/shop"
    workflow = workflow


def controller(reconciler: ShopReconciler | None = None) -> Controller[Shop]:
    return workflow.builder().build(reconciler or ShopReconciler())


def operator() -> Operator:
    """Return the operator of a new process."""
    reconciler = ShopReconciler()
    return Operator(name="shop-operator", controllers=(controller(reconciler),), metrics=reconciler.metrics.collectors)


def shop(name: str = "web", **spec: Any) -> Shop:
    return Shop.new(name, ShopSpec(**spec))


command_line_operator = operator()
