"""The pods that a Job creates and deletes, and its result."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Pod
from konverge_cluster.workloads.jobs.backoff import Failures
from konverge_cluster.workloads.jobs.conditions import (
    completions_condition,
    finished_condition,
    new_condition,
    suspended_conditions,
    target_condition,
    until_deadline,
    until_expiry,
)
from konverge_cluster.workloads.jobs.indexes import INDEX
from konverge_cluster.workloads.jobs.pod_actions import PodActions, next_pod_actions
from konverge_cluster.workloads.jobs.pod_counts import FAILURES, IGNORED_FAILURES, TRACKING, count_pods
from konverge_cluster.workloads.jobs.templates import new_job_pod
from workload_objects import NOW, at, job, pod, wire_time


def tracked(name: str, phase: str = "Running", index: int | None = None, **more: Any) -> Pod:
    annotations = {**more.pop("annotations", {}), **({INDEX: str(index)} if index is not None else {})}
    return pod(name, phase=phase, finalizers=[TRACKING], annotations=annotations, **more)


def plan(work: Job, pods: list[Pod], failures: Failures | None = None, now: datetime = NOW) -> PodActions:
    return next_pod_actions(work, count_pods(work, pods), failures=failures or Failures(), now=now)


@pytest.mark.parametrize(
    ("completions", "parallelism", "succeeded", "active", "created"),
    [
        (5, 2, 0, 0, 2),
        (5, 2, 0, 1, 1),
        (5, 2, 4, 0, 1),
        (5, 2, 5, 0, 0),
        (None, 3, 0, 0, 3),
        (None, 3, 1, 2, 0),
        (5, 0, 0, 0, 0),
        (2000, 2000, 0, 0, 500),
    ],
)
def test_as_many_pods_run_as_are_missing_and_allowed(
    completions: int | None, parallelism: int, succeeded: int, active: int, created: int
) -> None:
    work = job(completions=completions, parallelism=parallelism, status={"succeeded": succeeded})
    assert plan(work, [tracked(f"p{i}") for i in range(active)]) == PodActions(create=[None] * created)


def test_surplus_pods_are_deleted_the_least_advanced_first() -> None:
    work = job(completions=5, parallelism=1)
    pods = [tracked("ready", ready=True), tracked("pending", "Pending"), tracked("unready", ready=False)]
    assert [one.name for one in plan(work, pods).delete] == ["pending", "unready"]


def test_a_suspended_job_has_no_pods() -> None:
    assert [one.name for one in plan(job(suspend=True), [tracked("a")]).delete] == ["a"]


def test_a_failure_delays_the_next_pod() -> None:
    work = job()
    assert plan(work, [], Failures(2, at(-5))) == PodActions(wait=15)
    assert plan(work, [], Failures(2, at(-19.5))) == PodActions(wait=1)
    assert plan(work, [], Failures(2, at(-30))) == PodActions(create=[None])


def test_a_terminating_pod_is_replaced_at_once_or_when_it_has_terminated() -> None:
    leaving = [tracked("a", deleting=NOW)]
    assert plan(job(), leaving).create == [None]
    assert plan(job(podReplacementPolicy="Failed"), leaving).create == []


def test_an_indexed_job_creates_the_first_unused_indexes() -> None:
    work = job(completionMode="Indexed", completions=6, parallelism=3, status={"completedIndexes": "1"})
    assert plan(work, [tracked("a", index=0)]) == PodActions(create=[2, 3])


def test_pods_with_an_invalid_or_duplicate_index_are_deleted_first() -> None:
    work = job(completionMode="Indexed", completions=3, parallelism=3)
    pods = [
        tracked("good", index=0, ready=True),
        tracked("twin", index=0, ready=False),
        tracked("out", index=3),
        tracked("none"),
    ]
    assert [one.name for one in plan(work, pods).delete] == ["none", "twin", "out"]


def test_each_index_has_its_own_backoff() -> None:
    work = job(completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=3)
    failed = tracked("a", "Failed", 0, ready=False, annotations={FAILURES: "1"})
    assert plan(work, [failed], now=at(-590)) == PodActions(create=[1])
    running = tracked("b", index=1)
    assert plan(work, [failed, running], now=at(-590)) == PodActions(wait=10)
    assert plan(work, [failed, running]) == PodActions(create=[0])


def test_a_pod_of_a_job_has_the_finalizer_and_its_index() -> None:
    work = job(completionMode="Indexed", completions=2, backoffLimitPerIndex=3)
    replaced = tracked("a", "Failed", 1, annotations={FAILURES: "1"})
    made = new_job_pod(work, 1, replaced)
    assert made.metadata.generate_name == "work-1-"
    assert made.metadata.finalizers == [TRACKING]
    assert made.metadata.labels == {"app": "web", INDEX: "1"}
    assert made.metadata.annotations == {INDEX: "1", FAILURES: "2"}
    assert made.spec.hostname == "work-1"
    (variable,) = made.spec.containers[0].env
    assert variable.name == "JOB_COMPLETION_INDEX"
    assert variable.value_from.field_ref.field_path == f"metadata.labels['{INDEX}']"  # type: ignore[union-attr]
    (owner,) = made.metadata.owner_references
    assert (owner.uid, owner.controller, owner.block_owner_deletion) == ("uid-work", True, True)


def test_a_pod_without_an_index_is_the_template() -> None:
    made = new_job_pod(job(), None)
    assert made.metadata.generate_name == "work-"
    assert made.metadata.annotations == {}
    assert made.spec.containers[0].env == []


def test_ignored_failures_are_counted_separately() -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    work = job(completionMode="Indexed", backoffLimitPerIndex=3, podFailurePolicy={"rules": [rule]})
    status = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    replaced = tracked("a", "Failed", 0, status=status)
    assert new_job_pod(work, 0, replaced).metadata.annotations == {INDEX: "0", FAILURES: "0", IGNORED_FAILURES: "1"}


# The result


def target(work: Job, *pods: Pod, now: datetime = NOW) -> tuple[str, str | None] | None:
    condition = target_condition(work, count_pods(work, pods), pods=pods, now=now)
    return (condition.type, condition.reason) if condition is not None else None


def test_a_job_fails_when_more_pods_failed_than_it_allows() -> None:
    work = job(backoffLimit=1)
    assert target(work, tracked("a", "Failed")) is None
    assert target(work, tracked("a", "Failed"), tracked("b", "Failed")) == ("FailureTarget", "BackoffLimitExceeded")


def test_restarts_count_where_containers_are_restarted() -> None:
    def restarted(count: int) -> Pod:
        status = {"name": "c", "restartCount": count, "image": "i", "imageID": "", "ready": False}
        return tracked("a", status={"containerStatuses": [status]})

    on_failure = job(backoffLimit=2, restartPolicy="OnFailure")
    assert target(on_failure, restarted(1)) is None
    assert target(on_failure, restarted(2)) == ("FailureTarget", "BackoffLimitExceeded")
    assert target(job(backoffLimit=0, restartPolicy="OnFailure"), restarted(1)) == (
        "FailureTarget",
        "BackoffLimitExceeded",
    )
    assert target(job(backoffLimit=2), restarted(9)) is None


def test_a_job_fails_when_it_is_active_for_too_long() -> None:
    work = job(activeDeadlineSeconds=60, status={"startTime": wire_time(at(-59))})
    assert target(work) is None
    assert until_deadline(work, NOW) == 1
    assert target(work, now=at(1)) == ("FailureTarget", "DeadlineExceeded")
    suspended = job(activeDeadlineSeconds=60, suspend=True, status={"startTime": wire_time(at(-99))})
    assert target(suspended) is None


def test_a_decided_result_stays() -> None:
    work = job(backoffLimit=0)
    work.status.conditions = [new_condition("SuccessCriteriaMet", "True", reason="x", message="", now=at(-9))]
    assert target(work, tracked("a", "Failed"), tracked("b", "Failed")) == ("SuccessCriteriaMet", "x")


def test_indexes_can_fail_a_job_together() -> None:
    def failed(index: int) -> Pod:
        return tracked(f"p{index}", "Failed", index, annotations={FAILURES: "0"})

    spec: dict[str, Any] = {
        "completionMode": "Indexed",
        "completions": 3,
        "backoffLimitPerIndex": 0,
        "backoffLimit": 2**31 - 1,
    }
    assert target(job(**spec), failed(0)) is None
    assert target(job(**spec, maxFailedIndexes=0), failed(0)) == ("FailureTarget", "MaxFailedIndexesExceeded")
    others = [tracked("x", "Succeeded", 1), tracked("y", "Succeeded", 2)]
    assert target(job(**spec), failed(0), *others) == ("FailureTarget", "FailedIndexes")


def test_a_policy_can_fail_or_finish_a_job() -> None:
    rule = {"action": "FailJob", "onPodConditions": [{"type": "ConfigIssue", "status": "True"}]}
    ill = tracked("a", "Failed", status={"conditions": [{"type": "ConfigIssue", "status": "True"}]})
    assert target(job(podFailurePolicy={"rules": [rule]}), ill) == ("FailureTarget", "PodFailurePolicy")
    content = job(completionMode="Indexed", completions=3, successPolicy={"rules": [{"succeededCount": 1}]})
    assert target(content, tracked("b", "Succeeded", 2)) == ("SuccessCriteriaMet", "SuccessPolicy")


def test_a_job_is_complete_with_its_successes_when_nothing_runs() -> None:
    def reached(work: Job, succeeded: int, active: int) -> bool:
        return completions_condition(work, succeeded=succeeded, active=active, now=NOW) is not None

    assert reached(job(completions=2), 2, 0)
    assert not reached(job(completions=2), 2, 1)
    assert not reached(job(completions=2), 1, 0)
    assert reached(job(completions=0), 0, 0)
    assert not reached(job(completions=None), 0, 0)
    assert reached(job(completions=None), 1, 0)


def test_the_final_condition_repeats_the_target_condition() -> None:
    target = new_condition("FailureTarget", "True", reason="DeadlineExceeded", message="late", now=at(-5))
    end = finished_condition(target, NOW)
    assert (end.type, end.reason, end.message, end.last_transition_time) == ("Failed", "DeadlineExceeded", "late", NOW)


def test_a_suspension_and_its_end_set_the_condition() -> None:
    work = job(suspend=True)
    conditions = suspended_conditions(work, NOW)
    assert conditions is not None
    assert [(one.type, one.status, one.reason) for one in conditions] == [("Suspended", "True", "JobSuspended")]
    work.status.conditions = conditions
    assert suspended_conditions(work, NOW) is None
    work.spec.suspend = False
    resumed = suspended_conditions(work, at(5))
    assert resumed is not None
    assert [(one.status, one.reason, one.message) for one in resumed] == [("False", "JobResumed", "Job resumed")]
    assert suspended_conditions(job(), NOW) is None


def test_a_finished_job_expires_after_its_ttl() -> None:
    done = {"type": "Complete", "status": "True", "lastTransitionTime": wire_time(at(-40))}
    work = job(ttlSecondsAfterFinished=100, status={"conditions": [done]})
    assert until_expiry(work, NOW) == 60
    assert until_expiry(job(status={"conditions": [done]}), NOW) is None
    assert until_expiry(job(ttlSecondsAfterFinished=100), NOW) is None
    leaving = job(ttlSecondsAfterFinished=1, deleting=NOW, status={"conditions": [done]})
    assert until_expiry(leaving, NOW) is None
