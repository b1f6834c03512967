"""What the pods of a Job amount to.

Each pod is counted once: while it has the tracking finalizer it is seen, when it ends its uid is noted in the status,
then the finalizer goes, and then it is a number. A pod without the finalizer has been counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Pod
from konverge_cluster.workloads.jobs.indexes import index_of, indexes_of, read_indexes
from konverge_cluster.workloads.jobs.policies import handling_of
from konverge_cluster.workloads.pods.facts import (
    finished_at,
    is_active,
    is_being_deleted,
    is_ready,
    is_terminating,
)

__all__ = [
    "FAILURES",
    "IGNORED_FAILURES",
    "TRACKING",
    "Tally",
    "absolute_failures",
    "annotated_count",
    "has_failed",
    "is_indexed",
    "is_tracked",
    "only_failed_are_replaced",
    "tally_of",
]

TRACKING: Final = "batch.kubernetes.io/job-tracking"
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"


@dataclass(frozen=True)
class Tally:
    """The pods of a Job by what they are, and the counts that follow."""

    active: list[Pod]
    terminating: list[Pod]
    ready: int
    ended_well: list[Pod]
    """Succeeded, and in no count yet."""
    ended_badly: list[Pod]
    """Failed, and in no count yet."""
    succeeded: int
    failed: int
    done_before: set[int] = field(default_factory=set)
    """Of an indexed Job, the indexes that the status has as done."""
    done: set[int] = field(default_factory=set)
    """And those that are done."""
    given_up: set[int] | None = None
    """With a limit for each index, the indexes that have failed for good."""
    to_replace: dict[int, Pod] = field(default_factory=dict)
    """And the pod that the next one of an index takes over from."""


def tally_of(job: Job, pods: Sequence[Pod]) -> Tally:
    """Count pods."""
    uncounted = job.status.uncounted_terminated_pods
    noted_well = set(uncounted.succeeded if uncounted else ())
    noted_badly = set(uncounted.failed if uncounted else ())
    seen = [pod for pod in pods if is_tracked(pod) and _has_valid_index(job, pod)]
    well = [pod for pod in seen if pod.status.phase == "Succeeded" and pod.uid not in noted_well]
    badly = [pod for pod in seen if has_failed(job, pod) and pod.uid not in noted_badly]
    counted = [pod for pod in badly if handling_of(job.spec.pod_failure_policy, pod).counts]
    active = [pod for pod in pods if is_active(pod)]
    tally = Tally(
        active=active,
        terminating=[pod for pod in pods if is_terminating(pod)],
        ready=sum(map(is_ready, active)),
        ended_well=well,
        ended_badly=badly,
        succeeded=(job.status.succeeded or 0) + len(well) + len(noted_well),
        failed=(job.status.failed or 0) + len(counted) + len(noted_badly),
    )
    return _by_index(job, tally, seen) if is_indexed(job) else tally


def is_tracked(pod: Pod) -> bool:
    """Tell whether a pod is still to be counted."""
    return TRACKING in pod.metadata.finalizers


def is_indexed(job: Job) -> bool:
    """Tell whether each pod of a Job has an index."""
    return job.spec.completion_mode == "Indexed"


def only_failed_are_replaced(job: Job) -> bool:
    """Tell whether a pod is replaced only when it has ended, not when it is told to."""
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def has_failed(job: Job, pod: Pod) -> bool:
    """Tell whether a pod counts as failed; one that is being deleted does, unless it is waited for."""
    if pod.status.phase == "Failed" or only_failed_are_replaced(job):
        return pod.status.phase == "Failed"
    return is_being_deleted(pod) and pod.status.phase != "Succeeded"


def annotated_count(pod: Pod, annotation: str) -> int:
    """Read a number of failures from an annotation, 0 without one."""
    text = pod.metadata.annotations.get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def absolute_failures(pod: Pod) -> int:
    """Give all failures of a pod's index before it, those that do not count included."""
    return annotated_count(pod, FAILURES) + annotated_count(pod, IGNORED_FAILURES)


def _has_valid_index(job: Job, pod: Pod) -> bool:
    index = index_of(pod)
    return not is_indexed(job) or (index is not None and index < (job.spec.completions or 0))


def _by_index(job: Job, tally: Tally, seen: Sequence[Pod]) -> Tally:
    completions = job.spec.completions or 0
    before = read_indexes(job.status.completed_indexes, completions)
    done = before | indexes_of(pod for pod in seen if pod.status.phase == "Succeeded")
    given_up: set[int] | None = None
    to_replace: dict[int, Pod] = {}
    if job.spec.backoff_limit_per_index is not None:
        given_up = read_indexes(job.status.failed_indexes, completions)
        given_up |= indexes_of(pod for pod in seen if _fails_index(job, pod))
        to_replace = _to_replace(job, seen, done | given_up | indexes_of(tally.active))
    return replace(tally, succeeded=len(done), done_before=before, done=done, given_up=given_up, to_replace=to_replace)


def _fails_index(job: Job, pod: Pod) -> bool:
    if not has_failed(job, pod):
        return False
    handling = handling_of(job.spec.pod_failure_policy, pod)
    limit = job.spec.backoff_limit_per_index or 0
    return handling.action == "FailIndex" or (handling.counts and annotated_count(pod, FAILURES) >= limit)


def _to_replace(job: Job, seen: Sequence[Pod], settled: set[int]) -> dict[int, Pod]:
    """Find for each index that is still to be done its last failed pod."""
    last: dict[int, Pod] = {}
    for pod in sorted(seen, key=lambda pod: (absolute_failures(pod), finished_at(pod))):
        index = index_of(pod)
        if index is not None and index not in settled and has_failed(job, pod):
            last[index] = pod
    return last
