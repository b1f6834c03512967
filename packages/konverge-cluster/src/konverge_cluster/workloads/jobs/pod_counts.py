"""Counts of the pods of a Job.

Each pod is counted once. It has the tracking finalizer until it terminates and its uid is recorded in the status. Then
the finalizer is removed, and then the counter grows. A pod without the finalizer has been counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Pod
from konverge_cluster.workloads.jobs.indexes import index_of, indexes_of, parse_indexes
from konverge_cluster.workloads.jobs.policies import match_failure_policy
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
    "PodCounts",
    "absolute_failures",
    "annotated_count",
    "count_pods",
    "has_failed",
    "is_indexed",
    "is_tracked",
    "replaces_only_failed",
]

TRACKING: Final = "batch.kubernetes.io/job-tracking"
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"


@dataclass(frozen=True)
class PodCounts:
    """The pods of a Job by state, and the resulting counts."""

    active: list[Pod]
    terminating: list[Pod]
    ready: int
    uncounted_succeeded: list[Pod]
    """Succeeded, and in no count yet."""
    uncounted_failed: list[Pod]
    """Failed, and in no count yet."""
    succeeded: int
    failed: int
    previously_completed: set[int] = field(default_factory=set)
    """The completed indexes of an indexed Job in its status."""
    completed: set[int] = field(default_factory=set)
    """The completed indexes now."""
    failed_indexes: set[int] | None = None
    """With a backoff limit per index, the indexes that have failed permanently."""
    pods_to_replace: dict[int, Pod] = field(default_factory=dict)
    """The last failed pod of each index that will get a new pod."""


def count_pods(job: Job, pods: Sequence[Pod]) -> PodCounts:
    """Count the pods of a Job."""
    uncounted = job.status.uncounted_terminated_pods
    recorded_succeeded = set(uncounted.succeeded if uncounted else ())
    recorded_failed = set(uncounted.failed if uncounted else ())
    tracked = [pod for pod in pods if is_tracked(pod) and _has_valid_index(job, pod)]
    succeeded = [pod for pod in tracked if pod.status.phase == "Succeeded" and pod.uid not in recorded_succeeded]
    failed = [pod for pod in tracked if has_failed(job, pod) and pod.uid not in recorded_failed]
    counted = [pod for pod in failed if match_failure_policy(job.spec.pod_failure_policy, pod).counts]
    active = [pod for pod in pods if is_active(pod)]
    counts = PodCounts(
        active=active,
        terminating=[pod for pod in pods if is_terminating(pod)],
        ready=sum(map(is_ready, active)),
        uncounted_succeeded=succeeded,
        uncounted_failed=failed,
        succeeded=(job.status.succeeded or 0) + len(succeeded) + len(recorded_succeeded),
        failed=(job.status.failed or 0) + len(counted) + len(recorded_failed),
    )
    return _by_index(job, counts, tracked) if is_indexed(job) else counts


def is_tracked(pod: Pod) -> bool:
    """Report whether a pod has not been counted yet."""
    return TRACKING in pod.metadata.finalizers


def is_indexed(job: Job) -> bool:
    """Report whether each pod of a Job has an index."""
    return job.spec.completion_mode == "Indexed"


def replaces_only_failed(job: Job) -> bool:
    """Report whether a pod is replaced only after it has terminated, not while it terminates."""
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def has_failed(job: Job, pod: Pod) -> bool:
    """Report whether a pod counts as failed; one that is being deleted does unless replacement waits for its end."""
    if pod.status.phase == "Failed" or replaces_only_failed(job):
        return pod.status.phase == "Failed"
    return is_being_deleted(pod) and pod.status.phase != "Succeeded"


def annotated_count(pod: Pod, annotation: str) -> int:
    """Return a number of failures from an annotation, 0 without one."""
    text = pod.metadata.annotations.get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def absolute_failures(pod: Pod) -> int:
    """Return all failures of a pod's index before it, ignored ones included."""
    return annotated_count(pod, FAILURES) + annotated_count(pod, IGNORED_FAILURES)


def _has_valid_index(job: Job, pod: Pod) -> bool:
    index = index_of(pod)
    return not is_indexed(job) or (index is not None and index < (job.spec.completions or 0))


def _by_index(job: Job, counts: PodCounts, tracked: Sequence[Pod]) -> PodCounts:
    completions = job.spec.completions or 0
    previously_completed = parse_indexes(job.status.completed_indexes, completions)
    completed = previously_completed | indexes_of(pod for pod in tracked if pod.status.phase == "Succeeded")
    failed_indexes: set[int] | None = None
    pods_to_replace: dict[int, Pod] = {}
    if job.spec.backoff_limit_per_index is not None:
        failed_indexes = parse_indexes(job.status.failed_indexes, completions)
        failed_indexes |= indexes_of(pod for pod in tracked if _fails_index(job, pod))
        pods_to_replace = _pods_to_replace(job, tracked, completed | failed_indexes | indexes_of(counts.active))
    return replace(
        counts,
        succeeded=len(completed),
        previously_completed=previously_completed,
        completed=completed,
        failed_indexes=failed_indexes,
        pods_to_replace=pods_to_replace,
    )


def _fails_index(job: Job, pod: Pod) -> bool:
    if not has_failed(job, pod):
        return False
    match = match_failure_policy(job.spec.pod_failure_policy, pod)
    limit = job.spec.backoff_limit_per_index or 0
    return match.action == "FailIndex" or (match.counts and annotated_count(pod, FAILURES) >= limit)


def _pods_to_replace(job: Job, tracked: Sequence[Pod], excluded: set[int]) -> dict[int, Pod]:
    """Return the last failed pod of each index that is not completed."""
    last: dict[int, Pod] = {}
    for pod in sorted(tracked, key=lambda pod: (absolute_failures(pod), finished_at(pod))):
        index = index_of(pod)
        if index is not None and index not in excluded and has_failed(job, pod):
            last[index] = pod
    return last
