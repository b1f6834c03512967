"""The phases of a WebApp, and the rollout of its Deployment that they are derived from.

The phase is a function of what is observed and of what was last ready, so it is correct after a crash, a downtime or a
restore, whatever the status said before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from konverge.errors import TerminalError
from konverge.k8s.apps.v1 import Deployment, DeploymentCondition
from konverge.objects import AnyObject, ObjectStatus, object_status
from konverge.workflow import ComponentPhase, ComponentState, DerivedPhase, Phases, WorkflowState
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.children import CONTAINER

__all__ = [
    "PROGRESSING",
    "Rollout",
    "application_status",
    "derive_phase",
    "has_failed",
    "image_to_run",
    "phases",
    "rollout_of",
]

PROGRESSING = frozenset({Phase.CREATED, Phase.RECONCILING, Phase.WAITING, Phase.SCALING, Phase.UPDATING})
"""The phases in which a change is in progress."""

_DEGRADED_AFTER = 3
"""Failed attempts after which an error that may be temporary changes the phase."""


@dataclass(frozen=True)
class Rollout:
    """What a Deployment reports. `observed` says whether it reports about its current spec, `complete` whether all pods
    of its newest ReplicaSet have been available once, `refused` why pods cannot be created.
    """

    image: str
    desired: int
    replicas: int = 0
    updated: int = 0
    ready: int = 0
    available: int = 0
    observed: bool = False
    complete: bool = False
    is_available: bool = False
    refused: str = ""

    @property
    def message(self) -> str:
        return f"{self.available} of {self.desired} replicas are available"


def rollout_of(app: WebApp, component: ComponentState) -> Rollout:
    """Return the rollout of an application; without a Deployment only what its component says is known."""
    deployment = next((one for one in component.objects if isinstance(one, Deployment)), None)
    if deployment is None:
        observed, complete = component.phase is not ComponentPhase.WAITING, component.phase is ComponentPhase.DEGRADED
        return Rollout(image_to_run(app), app.spec.replicas, observed=observed, complete=complete)
    status, progressing = deployment.status, _condition(deployment, "Progressing")
    refused, available = _condition(deployment, "ReplicaFailure"), _condition(deployment, "Available")
    return Rollout(
        image=_image_of(deployment),
        desired=1 if deployment.spec.replicas is None else deployment.spec.replicas,
        replicas=status.replicas or 0,
        updated=status.updated_replicas or 0,
        ready=status.ready_replicas or 0,
        available=status.available_replicas or 0,
        observed=_is_observed(deployment),
        complete=progressing is not None and progressing.reason == "NewReplicaSetAvailable",
        is_available=_is_true(available),
        refused=(refused.message or "pods are refused") if refused is not None and _is_true(refused) else "",
    )


def image_to_run(app: WebApp) -> str:
    """Return the image for the pods: that of the spec, or the last good one if that of the spec was rolled back."""
    status = app.status
    rolled_back = app.spec.rollback and status.failed_image == app.spec.image and status.last_good_image
    return status.last_good_image if rolled_back else app.spec.image


def has_failed(app: WebApp, deployment: Deployment) -> bool:
    """Report whether the rollout of the image of the spec has failed."""
    progressing = _condition(deployment, "Progressing")
    late = progressing is not None and progressing.reason == "ProgressDeadlineExceeded"
    return late and _is_observed(deployment) and _image_of(deployment) == app.spec.image


def application_status(app: WebApp, objects: Sequence[AnyObject]) -> ObjectStatus:
    """Return the status of the application component: that of its Deployment, unless another image had to be run."""
    image = image_to_run(app)
    if image != app.spec.image:
        message = f"{app.spec.image} did not become ready, {image} runs instead (set another image to continue)"
        return ObjectStatus("Failed", message)
    deployment = next(one for one in objects if isinstance(one, Deployment))
    found = object_status(deployment)
    if found.status == "Failed":
        progressing = _condition(deployment, "Progressing")
        detail = (progressing.message if progressing is not None else None) or found.message
        return ObjectStatus("Failed", f"{_image_of(deployment)} does not become ready: {detail}")
    return found


def derive_phase(app: WebApp, state: WorkflowState) -> DerivedPhase[Phase]:
    """Return the phase that follows from what is observed. Every state has one.

    A suspended application has the phase of what is there; the reason says that nothing is changed.
    """
    derived = _derive_phase(app, state)
    if not state.suspended:
        return derived
    phase = derived.phase if state["application"].objects else app.status.phase
    message = "; ".join(filter(None, ["spec.suspend is set: nothing is changed", state.message]))
    return DerivedPhase(phase, "Suspended", message)


def _derive_phase(app: WebApp, state: WorkflowState) -> DerivedPhase[Phase]:
    if state.terminating:
        return DerivedPhase(Phase.DELETING, "Deleting", "children are being deleted")
    if state.errors:
        return _after_errors(app, state)
    component = state["application"]
    rollout = rollout_of(app, component)
    if component.phase is ComponentPhase.FAILED:
        reason = "RolloutFailed" if image_to_run(app) == app.spec.image else "RolledBack"
        return DerivedPhase(Phase.DEGRADED, reason, component.message, warning=True)
    if rollout.observed and rollout.refused:
        return DerivedPhase(Phase.DEGRADED, "PodsRefused", rollout.refused, warning=True)
    if not component.ready:
        return _not_ready(app, rollout)
    if state.ready:
        return DerivedPhase(Phase.READY, "AllReplicasAvailable", rollout.message)
    waiting = state.within(ComponentPhase.WAITING, ComponentPhase.FAILED)
    if waiting:
        return DerivedPhase(Phase.DEGRADED, waiting[0].reason, waiting[0].message, warning=True)
    return DerivedPhase(Phase.RECONCILING, "ChildrenChanging", state.message)


def _after_errors(app: WebApp, state: WorkflowState) -> DerivedPhase[Phase]:
    message = "; ".join(map(str, state.errors))
    if any(isinstance(error, TerminalError) for error in state.errors):
        return DerivedPhase(Phase.DEGRADED, "InvalidSpec", message, warning=True)
    if app.status.retry_count + 1 >= _DEGRADED_AFTER:
        return DerivedPhase(Phase.DEGRADED, "ReconcileFailed", message, warning=True)
    return DerivedPhase(app.status.phase, "Retrying", message)


def _not_ready(app: WebApp, rollout: Rollout) -> DerivedPhase[Phase]:
    """Return the phase of an application whose Deployment is not complete, by what has changed since it was ready."""
    good, good_replicas = app.status.last_good_image, app.status.last_good_replicas
    if good and rollout.image != good:
        return DerivedPhase(Phase.UPDATING, "RollingOut", f"from {good} to {rollout.image}")
    if good and rollout.observed and rollout.updated < rollout.replicas:
        return DerivedPhase(Phase.UPDATING, "RollingOut", "pods are being replaced")
    if good and rollout.desired != good_replicas:
        return DerivedPhase(Phase.SCALING, "Scaling", f"from {good_replicas} to {rollout.desired} replicas")
    if not rollout.observed:
        return DerivedPhase(Phase.RECONCILING, "ChildrenApplied", "all children are applied")
    if good and rollout.complete:
        return DerivedPhase(Phase.DEGRADED, "PodsLost", rollout.message, warning=True)
    return DerivedPhase(Phase.WAITING, "WaitingForPods", rollout.message)


def _is_observed(deployment: Deployment) -> bool:
    return (deployment.status.observed_generation or 0) >= (deployment.metadata.generation or 0)


def _condition(deployment: Deployment, type_: str) -> DeploymentCondition | None:
    return next((condition for condition in deployment.status.conditions or () if condition.type == type_), None)


def _is_true(condition: DeploymentCondition | None) -> bool:
    return condition is not None and condition.status == "True"


def _image_of(deployment: Deployment) -> str:
    containers = deployment.spec.template.spec.containers
    return next((container.image or "" for container in containers if container.name == CONTAINER), "")


_COMMON = frozenset({Phase.RECONCILING, Phase.SCALING, Phase.UPDATING, Phase.DEGRADED, Phase.DELETING})

phases: Phases[Phase] = Phases(
    Phase.CREATED,
    {
        Phase.CREATED: frozenset({Phase.RECONCILING, Phase.DEGRADED, Phase.DELETING}),
        Phase.RECONCILING: (_COMMON | {Phase.WAITING, Phase.READY}) - {Phase.RECONCILING},
        Phase.WAITING: _COMMON | {Phase.READY},
        Phase.READY: _COMMON,
        Phase.SCALING: (_COMMON | {Phase.READY}) - {Phase.SCALING},
        Phase.UPDATING: (_COMMON | {Phase.READY, Phase.WAITING}) - {Phase.UPDATING},
        Phase.DEGRADED: (_COMMON | {Phase.READY, Phase.WAITING}) - {Phase.DEGRADED},
        Phase.DELETING: frozenset[Phase](),
    },
    derive_phase,
)
