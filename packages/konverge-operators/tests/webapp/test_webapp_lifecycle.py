"""The phases of a WebApp, a plain function of what its components and its Deployment report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.errors import KonvergeError, TerminalError
from konverge.k8s.apps.v1 import Deployment, DeploymentStatus
from konverge.objects import AnyObject, Time, from_wire
from konverge.workflow import ComponentPhase, ComponentState, WorkflowState, check_phases
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.children import deployment_for
from konverge_operators.webapp.phases import application_status, derive_phase, phases, rollout_of
from konverge_operators.webapp.reconciler import workflow
from webapps import webapp

FINISHED = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
ROLLING = {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}
LATE = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too late"}
REFUSED = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}
AVAILABLE = {"type": "Available", "status": "True"}


def app_of(good: str = "a:1", *, replicas: int = 3, image: str = "a:1", **status: Any) -> WebApp:
    """Return an application that was ready with three replicas of `good`; "" if it never was."""
    app = webapp(image=image, replicas=replicas, rollback=True)
    app.status.last_good_image, app.status.last_good_replicas = good, 3 if good else 0
    for name, value in status.items():
        setattr(app.status, name, value)
    return app


def deployment_of(app: WebApp, counts: Sequence[int], *conditions: dict[str, str], observed: bool = True) -> Deployment:
    """Return a Deployment with counts of replicas, updated and available ones."""
    deployment = deployment_for(app, image=app.spec.image, replicas=app.spec.replicas)
    deployment.metadata.generation = 2
    replicas, updated, available = counts
    status = {"observedGeneration": 2 if observed else 1, "replicas": replicas, "updatedReplicas": updated}
    status |= {"availableReplicas": available, "readyReplicas": available}
    enough = [AVAILABLE] if available >= app.spec.replicas else []
    deployment.status = from_wire(DeploymentStatus, {**status, "conditions": [*conditions, *enough]})
    return deployment


@pytest.mark.parametrize("phase", [Phase.CREATED, Phase.READY])
def test_a_suspended_application_has_the_phase_of_what_is_there(phase: Phase) -> None:
    app = app_of(phase=phase)
    ready = judged(app, deployment_of(app, (3, 3, 3), FINISHED))
    derived = derive_phase(app, WorkflowState(ready.states, suspended=True))
    assert (derived.phase, derived.reason) == (Phase.READY, "Suspended")
    nothing = ComponentState(name="application", phase=ComponentPhase.WAITING, reason="Suspended", message="nothing")
    derived = derive_phase(app, WorkflowState((nothing,), suspended=True))
    assert (derived.phase, derived.message) == (
        phase,
        "spec.suspend is set: nothing is changed; waiting for application (nothing)",
    )


def judged(app: WebApp, deployment: Deployment) -> WorkflowState:
    """Return the state that a workflow finds for an application with this Deployment."""
    objects: list[AnyObject] = [deployment]
    found = application_status(app, objects)
    names = {"Current": ComponentPhase.READY, "Failed": ComponentPhase.FAILED}
    phase = names.get(found.status, ComponentPhase.UPDATING)
    state = ComponentState(
        name="application", phase=phase, reason="Because", message=found.message, objects=tuple(objects)
    )
    return WorkflowState((state,))


@pytest.mark.parametrize(
    ("app", "counts", "conditions", "observed", "phase", "reason"),
    [
        (app_of(""), (0, 0, 0), [], False, Phase.RECONCILING, "ChildrenApplied"),
        (app_of(""), (0, 0, 0), [], True, Phase.WAITING, "WaitingForPods"),
        (app_of(""), (3, 3, 2), [ROLLING], True, Phase.WAITING, "WaitingForPods"),
        (app_of(""), (3, 3, 3), [FINISHED], True, Phase.READY, "AllReplicasAvailable"),
        (app_of("", replicas=0), (0, 0, 0), [FINISHED], True, Phase.READY, "AllReplicasAvailable"),
        (app_of(), (3, 3, 3), [FINISHED], True, Phase.READY, "AllReplicasAvailable"),
        (app_of(), (3, 3, 3), [FINISHED], False, Phase.RECONCILING, "ChildrenApplied"),
        (app_of(replicas=5), (3, 3, 3), [FINISHED], False, Phase.SCALING, "Scaling"),
        (app_of(image="a:2"), (3, 3, 3), [FINISHED], False, Phase.UPDATING, "RollingOut"),
        (app_of(replicas=5), (5, 5, 3), [FINISHED], True, Phase.SCALING, "Scaling"),
        (app_of(replicas=1), (3, 3, 3), [FINISHED], True, Phase.SCALING, "Scaling"),
        (app_of(image="a:2"), (4, 1, 3), [ROLLING], True, Phase.UPDATING, "RollingOut"),
        (app_of(image="a:2"), (3, 3, 2), [ROLLING], True, Phase.UPDATING, "RollingOut"),
        (app_of(), (4, 1, 3), [ROLLING], True, Phase.UPDATING, "RollingOut"),
        (app_of(), (3, 3, 1), [ROLLING], True, Phase.WAITING, "WaitingForPods"),
        (app_of(), (3, 3, 2), [FINISHED], True, Phase.DEGRADED, "PodsLost"),
        (app_of(""), (3, 3, 0), [LATE], True, Phase.DEGRADED, "RolloutFailed"),
        (app_of(""), (0, 0, 0), [ROLLING, REFUSED], True, Phase.DEGRADED, "PodsRefused"),
        (app_of(image="a:2"), (3, 3, 3), [LATE], False, Phase.UPDATING, "RollingOut"),
        (app_of(image="a:2", failed_image="a:2"), (3, 3, 3), [FINISHED], True, Phase.DEGRADED, "RolledBack"),
    ],
)
def test_the_phase_follows_from_what_is_observed(
    app: WebApp, counts: Sequence[int], conditions: list[dict[str, str]], observed: bool, phase: Phase, reason: str
) -> None:
    derived = derive_phase(app, judged(app, deployment_of(app, counts, *conditions, observed=observed)))
    assert (derived.phase, derived.reason) == (phase, reason)
    assert derived.message
    assert derived.warning == (phase is Phase.DEGRADED)


@pytest.mark.parametrize(
    ("error", "retries", "phase", "reason"),
    [
        (KonvergeError("x"), 0, Phase.READY, "Retrying"),
        (KonvergeError("x"), 1, Phase.READY, "Retrying"),
        (KonvergeError("x"), 2, Phase.DEGRADED, "ReconcileFailed"),
        (TerminalError("x"), 0, Phase.DEGRADED, "InvalidSpec"),
    ],
)
def test_only_a_final_or_repeated_error_changes_the_phase(
    error: KonvergeError, retries: int, phase: Phase, reason: str
) -> None:
    app = app_of(phase=Phase.READY, retry_count=retries)
    state = ComponentState(name="application", phase=ComponentPhase.FAILED, reason="ReconcileFailed", error=error)
    derived = derive_phase(app, WorkflowState((state,)))
    assert (derived.phase, derived.reason, derived.message) == (phase, reason, "x")


def test_a_route_that_waits_degrades_a_ready_application() -> None:
    app = app_of()
    ready = judged(app, deployment_of(app, (3, 3, 3), FINISHED)).states
    waiting = ComponentState(name="route", phase=ComponentPhase.WAITING, reason="GatewayNotInstalled", message="x")
    removing = ComponentState(name="route", phase=ComponentPhase.REMOVING, reason="Removing", message="x")
    assert derive_phase(app, WorkflowState((*ready, waiting))).phase is Phase.DEGRADED
    assert derive_phase(app, WorkflowState((*ready, removing))).phase is Phase.RECONCILING


def test_an_application_that_is_deleted_is_deleting_whatever_its_components_are() -> None:
    app = app_of()
    app.metadata.deletion_timestamp = Time.now()
    assert derive_phase(app, WorkflowState((), terminating=True)).phase is Phase.DELETING


counts = st.integers(0, 4)


@given(
    st.tuples(counts, counts, counts).map(lambda found: (max(found), *found[1:])),  # no more of a kind than there are
    st.lists(st.sampled_from([FINISHED, ROLLING, LATE, REFUSED]), max_size=2),
    st.booleans(),
    st.builds(app_of, st.sampled_from(["", "a:1"]), image=st.sampled_from(["a:1", "a:2"]), replicas=counts),
)
def test_every_observation_has_a_phase_and_ready_only_a_complete_rollout(
    found: Sequence[int], conditions: list[dict[str, str]], observed: bool, app: WebApp
) -> None:
    state = judged(app, deployment_of(app, found, *conditions, observed=observed))
    derived = derive_phase(app, state)
    assert derived.reason.isalpha()
    if derived.phase is Phase.READY:
        rollout = rollout_of(app, state["application"])
        assert rollout.observed
        assert rollout.available == rollout.desired == rollout.updated == rollout.replicas


def test_every_phase_is_reached_and_left_by_declared_transitions() -> None:
    samples = [webapp(), app_of(), app_of(image="a:2"), app_of(replicas=5), webapp(ingress={"host": "a.example.com"})]
    check_phases(workflow, samples)
    assert all(Phase.DELETING in after for before, after in phases.transitions.items() if before is not Phase.DELETING)


def test_the_route_is_created_after_the_application_and_removed_before_it() -> None:
    assert workflow.needs == {"application": (), "route": ("application",), "monitoring": ("application",)}
    assert workflow.enabled(webapp()) == {"application"}
