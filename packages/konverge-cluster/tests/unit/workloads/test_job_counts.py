"""Counting the pods of a Job, each once."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.k8s.batch.v1 import Job, PodFailurePolicy, SuccessPolicy
from konverge.k8s.core.v1 import Pod
from konverge.objects import from_wire, to_wire
from konverge_cluster.workloads.jobs.backoff import Failures, remaining_backoff, update_failures
from konverge_cluster.workloads.jobs.conditions import new_condition
from konverge_cluster.workloads.jobs.indexes import (
    INDEX,
    format_indexes,
    parse_indexes,
    pending_indexes,
)
from konverge_cluster.workloads.jobs.pod_counts import FAILURES, TRACKING, count_pods
from konverge_cluster.workloads.jobs.policies import match_failure_policy, success_rule
from konverge_cluster.workloads.jobs.uncounted_pods import add_uncounted, flush_uncounted
from workload_objects import NOW, at, job, pod

FAILED = new_condition("FailureTarget", "True", reason="r", message="m", now=NOW)
MET = new_condition("SuccessCriteriaMet", "True", reason="r", message="m", now=NOW)


def tracked(name: str, phase: str, index: int | None = None, **more: Any) -> Pod:
    annotations = {**more.pop("annotations", {}), **({INDEX: str(index)} if index is not None else {})}
    return pod(name, phase=phase, finalizers=[TRACKING], annotations=annotations, **more)


def test_a_pod_is_counted_once_while_it_has_the_finalizer() -> None:
    pods = [
        tracked("a", "Succeeded"),
        tracked("noted", "Succeeded"),
        pod("counted", phase="Succeeded"),
        tracked("b", "Failed"),
        tracked("run", "Running", ready=True),
        tracked("leaving", "Running", deleting=NOW),
    ]
    work = job(status={"succeeded": 4, "uncountedTerminatedPods": {"succeeded": ["uid-noted"]}})
    counts = count_pods(work, pods)
    assert (counts.succeeded, counts.failed) == (6, 2)
    assert [one.name for one in counts.active] == ["run"]
    assert [one.name for one in counts.uncounted_failed] == ["b", "leaving"]
    assert (counts.ready, len(counts.terminating)) == (1, 1)


def test_a_terminating_pod_has_failed_unless_only_failed_pods_are_replaced() -> None:
    leaving = tracked("leaving", "Running", deleting=NOW)
    assert count_pods(job(), [leaving]).failed == 1
    assert count_pods(job(podReplacementPolicy="Failed"), [leaving]).failed == 0


def test_terminated_pods_are_recorded_released_and_then_counted() -> None:
    work = job(completions=3)
    pods = [tracked("a", "Succeeded"), tracked("b", "Failed"), tracked("c", "Running")]
    update = add_uncounted(work, count_pods(work, pods), pods=pods, target=None)
    assert [one.name for one in update.released] == ["a", "b"]
    noted = work.status.uncounted_terminated_pods
    assert noted is not None
    assert (noted.succeeded, noted.failed) == (["uid-a"], ["uid-b"])
    assert not work.status.succeeded

    flush_uncounted(work.status, {"uid-b", "uid-c"})
    assert (work.status.succeeded, work.status.failed) == (1, None)
    flush_uncounted(work.status, {"uid-c"})
    assert (work.status.succeeded, work.status.failed) == (1, 1)


def test_active_pods_count_as_failed_when_a_job_fails_but_not_when_it_succeeds() -> None:
    for target, failures in ((FAILED, ["uid-c"]), (MET, [])):
        work = job(completions=3)
        pods = [tracked("c", "Running")]
        update = add_uncounted(work, count_pods(work, pods), pods=pods, target=target)
        assert [one.name for one in update.released] == ["c"]
        assert work.status.uncounted_terminated_pods.failed == failures  # type: ignore[union-attr]


def test_a_status_holds_no_more_than_five_hundred_pods_at_a_time() -> None:
    work = job(completions=600)
    pods = [tracked(f"p{i}", "Succeeded") for i in range(600)]
    update = add_uncounted(work, count_pods(work, pods), pods=pods, target=None)
    assert update.full
    assert len(update.released) == 500


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from(["Succeeded", "Failed", "Running"]), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 63)), max_size=6),
)
def test_a_crash_at_any_step_loses_no_pod_and_counts_none_twice(
    phases: list[str], crashes: list[tuple[int, int]]
) -> None:
    held = {f"p{i}": phase for i, phase in enumerate(phases)}
    free: dict[str, str] = {}
    stored = job(completions=99)
    for step, released in crashes:
        pods = [tracked(name, phase) for name, phase in held.items()]
        counts = count_pods(stored, pods)
        assert (counts.succeeded, counts.failed) == (phases.count("Succeeded"), phases.count("Failed"))
        work = from_wire(Job, to_wire(stored))
        everything = [*pods, *(pod(name, phase=phase) for name, phase in free.items())]
        update = add_uncounted(work, counts, pods=everything, target=None)
        if step == 0:
            continue
        stored = from_wire(Job, to_wire(work))
        for place, one in enumerate(update.released):
            if released >> place & 1:
                free[one.name] = held.pop(one.name)
        if step == 2:
            flush_uncounted(work.status, {f"uid-{name}" for name in held})
            stored = work


# Indexes


def test_indexes_are_written_with_ranges_of_three_or_more() -> None:
    assert format_indexes([5, 1, 2, 3, 7, 8]) == "1-3,5,7,8"
    assert format_indexes([]) == ""
    assert parse_indexes("1-3,5,7,8", 8) == {1, 2, 3, 5, 7}
    assert parse_indexes("x,2-,3", 9) == {3}
    assert parse_indexes(None, 9) == set()


@given(st.sets(st.integers(0, 40)))
@settings(max_examples=100)
def test_indexes_round_trip(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes), 41) == indexes


def test_the_first_unused_indexes_are_next() -> None:
    assert pending_indexes({0, 2}, completions=6, count=2) == [1, 3]
    assert pending_indexes({0, 2}, completions=3, count=2) == [1]


def test_an_indexed_job_counts_indexes_not_pods() -> None:
    work = job(completionMode="Indexed", completions=4, status={"completedIndexes": "0"})
    pods = [
        tracked("a", "Succeeded", 1),
        tracked("twin", "Succeeded", 1),
        tracked("out", "Succeeded", 9),
        tracked("none", "Succeeded"),
        tracked("run", "Running", 2),
    ]
    counts = count_pods(work, pods)
    assert (counts.succeeded, counts.completed, counts.previously_completed) == (2, {0, 1}, {0})
    update = add_uncounted(work, counts, pods=pods, target=None)
    assert len(update.released) == 4
    assert (work.status.succeeded, work.status.completed_indexes) == (2, "0,1")
    assert work.status.uncounted_terminated_pods.succeeded == []  # type: ignore[union-attr]


def test_an_index_beyond_its_backoff_limit_fails_and_others_are_replaced() -> None:
    work = job(completionMode="Indexed", completions=4, backoffLimitPerIndex=1)
    pods = [
        tracked("a", "Failed", 0, annotations={FAILURES: "1"}),
        tracked("b", "Failed", 1, annotations={FAILURES: "0"}),
    ]
    counts = count_pods(work, pods)
    assert counts.failed_indexes == {0}
    assert {index: one.name for index, one in counts.pods_to_replace.items()} == {1: "b"}
    update = add_uncounted(work, counts, pods=pods, target=None)
    assert [one.name for one in update.released] == ["a"]
    assert work.status.failed_indexes == "0"


# Backoff


def failed_at(seconds: float) -> Pod:
    return pod("x", phase="Failed", deleting=at(seconds + 30))


def test_the_backoff_doubles_with_each_failure_up_to_ten_minutes() -> None:
    waits = [remaining_backoff(Failures(count, NOW), NOW) for count in (0, 1, 2, 3, 7, 50)]
    assert waits == [0, 10, 20, 40, 600, 600]
    assert remaining_backoff(Failures(2, NOW), at(15)) == 5
    assert remaining_backoff(Failures(2, NOW), at(25)) == 0


def test_a_success_resets_the_failures_before_it() -> None:
    known = Failures(3, at(-100))
    assert update_failures(known, [], []) == known
    assert update_failures(known, [], [failed_at(-5), failed_at(-9)]) == Failures(5, at(-5))
    assert update_failures(known, [failed_at(-7)], [failed_at(-5), failed_at(-9)]) == Failures(1, at(-5))
    assert update_failures(known, [failed_at(-7)], []) == Failures()


# Policies


def policy(*rules: dict[str, Any]) -> PodFailurePolicy:
    return from_wire(PodFailurePolicy, {"rules": list(rules)})


def exited(code: int) -> Pod:
    state = {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T11:00:00Z"}}
    status = {"name": "c", "restartCount": 0, "image": "i", "imageID": "", "ready": False, "state": state}
    return pod("p", phase="Failed", status={"containerStatuses": [status]})


def test_the_first_rule_that_a_failed_pod_matches_decides() -> None:
    rules = policy(
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "FailIndex", "onExitCodes": {"containerName": "c", "operator": "NotIn", "values": [1]}},
    )
    message = "Container c for pod default/p failed with exit code 42 matching FailJob rule at index 1"
    assert match_failure_policy(rules, exited(42)).message == message
    assert match_failure_policy(rules, exited(3)).action == "FailIndex"
    assert match_failure_policy(rules, exited(1)) == match_failure_policy(None, exited(1))
    disrupted = pod("p", phase="Failed", status={"conditions": [{"type": "DisruptionTarget", "status": "True"}]})
    assert not match_failure_policy(rules, disrupted).counts


def test_a_condition_can_fail_the_job() -> None:
    rules = policy({"action": "FailJob", "onPodConditions": [{"type": "ConfigIssue", "status": "True"}]})
    ill = pod("p", phase="Failed", status={"conditions": [{"type": "ConfigIssue", "status": "True"}]})
    assert (
        match_failure_policy(rules, ill).message
        == "Pod default/p has condition ConfigIssue matching FailJob rule at index 0"
    )


def test_a_success_policy_may_require_only_some_indexes() -> None:
    rules = from_wire(
        SuccessPolicy, {"rules": [{"succeededIndexes": "0-2", "succeededCount": 2}, {"succeededCount": 4}]}
    )
    assert success_rule(rules, {0, 3}, 10) == ""
    assert success_rule(rules, {0, 2}, 10) == "Matched rules at index 0"
    assert success_rule(rules, {4, 5, 6, 7}, 10) == "Matched rules at index 1"
    assert success_rule(rules, set(), 10) == success_rule(None, {1}, 10) == ""
