"""The status of a Deployment, and its progress."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from konverge.k8s.apps.v1 import Deployment, DeploymentStatus
from konverge_cluster.workloads.deployments.conditions import new_condition
from konverge_cluster.workloads.deployments.revisions import DESIRED, MAX
from konverge_cluster.workloads.deployments.rolling import Step
from konverge_cluster.workloads.deployments.rollout import is_scaling, scaling_steps
from konverge_cluster.workloads.deployments.status import (
    ReplicaSets,
    is_complete,
    next_check,
    paused_condition,
    rollout_status,
    status_of,
)
from workload_objects import NOW, at, deployment, replica_set

OLD = replica_set("old", 2, available=2, status={"terminatingReplicas": 1})
NEW = replica_set("new", 1, available=0)


def told(status: DeploymentStatus) -> list[tuple[str, str, str | None, str | None]]:
    return [(one.type, one.status, one.reason, one.message) for one in status.conditions]


def rolled(web: Deployment, sets: ReplicaSets, now: datetime = NOW) -> list[tuple[str, str, str | None, str | None]]:
    """Apply the status of a rollout, and return its conditions."""
    web.status = rollout_status(web, sets, now)
    return told(web.status)


def progressing(reason: str, *, since: datetime = NOW, status: str = "True") -> DeploymentStatus:
    made = new_condition("Progressing", status, reason=reason, message="", now=since)  # type: ignore[arg-type]
    return DeploymentStatus(conditions=[made])


def test_counts_are_those_of_all_replica_sets() -> None:
    status = status_of(deployment(), ReplicaSets(NEW, [OLD]), NOW)
    assert (status.replicas, status.updated_replicas, status.ready_replicas) == (3, 1, 2)
    assert (status.available_replicas, status.unavailable_replicas, status.terminating_replicas) == (2, 1, 1)
    assert status.observed_generation == 1
    assert told(status) == [
        ("Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    ]


def test_terminating_replicas_are_unknown_if_an_observed_replica_set_does_not_report_them() -> None:
    silent, unseen = replica_set("a"), replica_set("b", status={"observedGeneration": 0})
    silent.status.terminating_replicas = unseen.status.terminating_replicas = None
    assert status_of(deployment(), ReplicaSets(unseen, [OLD]), NOW).terminating_replicas == 1
    assert status_of(deployment(), ReplicaSets(unseen, [silent]), NOW).terminating_replicas is None


def test_a_rollout_goes_from_progressing_to_available() -> None:
    web = deployment()
    first = rolled(web, ReplicaSets(replica_set("new", 3, available=1), []))
    assert first[-1] == ("Progressing", "True", "ReplicaSetUpdated", 'ReplicaSet "new" is progressing.')
    last = rolled(web, ReplicaSets(replica_set("new", 3), []), at(5))
    assert last == [
        ("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        ("Progressing", "True", "NewReplicaSetAvailable", 'ReplicaSet "new" has successfully progressed.'),
    ]
    assert web.status.conditions[1].last_transition_time == NOW
    assert web.status.conditions[1].last_update_time == at(5)
    assert is_complete(web, web.status)


def test_after_a_rollout_a_lost_pod_does_not_affect_progress() -> None:
    web = deployment()
    rolled(web, ReplicaSets(replica_set("new", 3), []))
    conditions = rolled(web, ReplicaSets(replica_set("new", 3, available=1), []), at(9999))
    assert conditions[0][2] == "NewReplicaSetAvailable"
    assert conditions[1][2] == "MinimumReplicasUnavailable"


def test_progress_restarts_the_deadline() -> None:
    web = deployment()
    rolled(web, ReplicaSets(replica_set("new", 3, available=1), []))
    rolled(web, ReplicaSets(replica_set("new", 3, available=2), []), at(500))
    (condition,) = [one for one in web.status.conditions if one.type == "Progressing"]
    assert (condition.last_update_time, condition.last_transition_time) == (at(500), NOW)


def test_without_progress_until_the_deadline_a_rollout_stays_timed_out() -> None:
    web = deployment()
    stuck = ReplicaSets(replica_set("new", 3, available=1), [])
    rolled(web, stuck)
    assert rolled(web, stuck, at(600))[-1][2] == "ReplicaSetUpdated"
    late = rolled(web, stuck, at(601))
    assert late[-1] == (
        "Progressing",
        "False",
        "ProgressDeadlineExceeded",
        'ReplicaSet "new" has timed out progressing.',
    )
    assert rolled(web, stuck, at(9999)) == late
    assert next_check(web, at(9999)) is None


def test_the_deadline_is_checked_a_second_after_it() -> None:
    web = deployment(status={"replicas": 1})
    web.status.conditions = progressing("ReplicaSetUpdated").conditions
    assert next_check(web, at(100)) == 501
    assert next_check(web, at(1000)) == 1
    assert next_check(deployment(), NOW) is None


def test_a_deployment_without_a_deadline_has_no_progressing_condition() -> None:
    web = deployment(progressDeadlineSeconds=2**31 - 1)
    web.status = progressing("ReplicaSetUpdated")
    assert [row[0] for row in rolled(web, ReplicaSets(NEW, [OLD]))] == ["Available"]


def test_a_pause_stops_the_deadline_and_a_resume_restarts_it() -> None:
    def after(reason: str, **spec: Any) -> tuple[str | None, str | None] | None:
        web = deployment(**spec)
        web.status = progressing(reason)
        made = paused_condition(web, NOW)
        return (made.reason, made.message) if made is not None else None

    assert after("ReplicaSetUpdated", paused=True) == ("DeploymentPaused", "Deployment is paused")
    assert after("DeploymentPaused", paused=True) is None
    assert after("DeploymentPaused") == ("DeploymentResumed", "Deployment is resumed")
    assert after("ReplicaSetUpdated") is None
    assert after("ProgressDeadlineExceeded", paused=True) is None


def test_a_failure_of_a_replica_set_is_reported_by_the_deployment_the_new_ones_first() -> None:
    def failing(name: str, message: str) -> Any:
        condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
        return replica_set(name, 1, available=0, status={"conditions": [condition]})

    web = deployment()
    assert rolled(web, ReplicaSets(failing("new", "a"), [failing("old", "b")]))[-1][3] == "a"
    web = deployment()
    assert rolled(web, ReplicaSets(NEW, [failing("old", "b")]))[-1] == ("ReplicaFailure", "True", "FailedCreate", "b")
    assert "ReplicaFailure" not in [row[0] for row in rolled(web, ReplicaSets(NEW, []))]


def test_a_change_of_replicas_is_distinguished_from_a_rollout() -> None:
    current, other = replica_set("a", annotations={DESIRED: "3"}), replica_set("b", annotations={DESIRED: "2"})
    assert not is_scaling(deployment(3), ReplicaSets(current, []))
    assert is_scaling(deployment(3), ReplicaSets(current, [other]))
    assert not is_scaling(deployment(3), ReplicaSets(current, [replica_set("c", 0, annotations={DESIRED: "2"})]))


def test_a_change_of_replicas_scales_one_replica_set_or_all_during_a_rollout() -> None:
    told_of = {DESIRED: "5", MAX: "7"}
    new, old = replica_set("new", 3, annotations=told_of), replica_set("old", 2, annotations=told_of)
    empty = replica_set("empty", 0)
    assert scaling_steps(deployment(5), ReplicaSets(new, [empty])) == [Step("new", 5)]
    assert scaling_steps(deployment(5), ReplicaSets(None, [empty, old])) == [Step("old", 5)]
    assert scaling_steps(deployment(5), ReplicaSets(None, [empty])) == [Step("empty", 5)]
    assert scaling_steps(deployment(5), ReplicaSets(None, [])) == []
    assert [step.name for step in scaling_steps(deployment(8), ReplicaSets(new, [old]))] == ["new", "old"]
    assert scaling_steps(deployment(8, strategy={"type": "Recreate"}), ReplicaSets(new, [old])) == []


def test_when_the_new_replica_set_is_saturated_the_others_scale_to_zero() -> None:
    new = replica_set("new", 3, annotations={DESIRED: "3"})
    assert scaling_steps(deployment(3), ReplicaSets(new, [replica_set("old", 2)])) == [Step("old", 0)]
