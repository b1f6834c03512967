"""Counting of terminated pods, each exactly once, whatever is interrupted.

First the uids of terminated pods are recorded in the status, then their finalizers are removed, and then the counters
grow and the uids leave the status. A crash after any of these steps loses nothing: the finalizers show how far it
came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from konverge.k8s.batch.v1 import Job, JobCondition, JobStatus, UncountedTerminatedPods
from konverge.k8s.core.v1 import Pod
from konverge_cluster.workloads.jobs.conditions import SUCCESS
from konverge_cluster.workloads.jobs.indexes import format_indexes, index_of
from konverge_cluster.workloads.jobs.pod_counts import PodCounts, has_failed, is_indexed, is_tracked
from konverge_cluster.workloads.jobs.policies import match_failure_policy
from konverge_cluster.workloads.pods.facts import is_being_deleted

__all__ = ["UncountedUpdate", "add_uncounted", "flush_uncounted"]

_MAX_UNCOUNTED: Final = 500


@dataclass(frozen=True)
class UncountedUpdate:
    """The pods whose finalizers are removed next; `full` means that the status is at its limit and others wait."""

    released: list[Pod]
    full: bool = False


def add_uncounted(job: Job, counts: PodCounts, *, pods: Sequence[Pod], target: JobCondition | None) -> UncountedUpdate:
    """Record terminated pods in the status of the Job; all pods once its result is decided."""
    uncounted = job.status.uncounted_terminated_pods = job.status.uncounted_terminated_pods or UncountedTerminatedPods()
    completed = set(counts.previously_completed)
    released: list[Pod] = []
    for pod in _in_order(job, pods):
        if not is_tracked(pod) or not _can_release(job, pod, counts, target):
            continue
        released.append(pod)
        _record(job, pod, uncounted, completed, target)
        if (
            len(completed - counts.previously_completed) + len(uncounted.succeeded) + len(uncounted.failed)
            >= _MAX_UNCOUNTED
        ):
            break
    full = (
        len(completed - counts.previously_completed) + len(uncounted.succeeded) + len(uncounted.failed)
        >= _MAX_UNCOUNTED
    )
    if is_indexed(job):
        job.status.succeeded = len(counts.completed | completed) or None
        job.status.completed_indexes = format_indexes(counts.completed | completed) or None
        job.status.failed_indexes = format_indexes(counts.failed_indexes) if counts.failed_indexes is not None else None
    return UncountedUpdate(released, full)


def flush_uncounted(status: JobStatus, tracked: set[str]) -> None:
    """Replace the uids of pods without a finalizer by counters; `tracked` are the uids of pods that still have one."""
    uncounted = status.uncounted_terminated_pods
    if uncounted is None:
        return
    succeeded = [uid for uid in uncounted.succeeded if uid in tracked]
    failed = [uid for uid in uncounted.failed if uid in tracked]
    status.succeeded = (status.succeeded or 0) + len(uncounted.succeeded) - len(succeeded) or None
    status.failed = (status.failed or 0) + len(uncounted.failed) - len(failed) or None
    status.uncounted_terminated_pods = UncountedTerminatedPods(succeeded=succeeded, failed=failed)


def _in_order(job: Job, pods: Sequence[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: index_of(pod) or 0) if is_indexed(job) else list(pods)


def _can_release(job: Job, pod: Pod, counts: PodCounts, target: JobCondition | None) -> bool:
    if is_being_deleted(job) or target is not None or pod.status.phase == "Succeeded":
        return True
    # The new pod of the index reads the failure count from this one.
    is_needed = any(pod.uid == other.uid for other in counts.pods_to_replace.values())
    return has_failed(job, pod) and not is_needed


def _record(
    job: Job, pod: Pod, uncounted: UncountedTerminatedPods, completed: set[int], target: JobCondition | None
) -> None:
    index = index_of(pod)
    has_valid_index = not is_indexed(job) or (index is not None and index < (job.spec.completions or 0))
    if pod.status.phase == "Succeeded" and pod.uid not in uncounted.failed:
        if is_indexed(job):
            completed |= {index} if has_valid_index and index is not None else set()
        elif pod.uid not in uncounted.succeeded:
            uncounted.succeeded.append(pod.uid)
    elif has_failed(job, pod) or (target is not None and target.type != SUCCESS):
        counts = match_failure_policy(job.spec.pod_failure_policy, pod).counts
        if has_valid_index and counts and pod.uid not in uncounted.failed:
            uncounted.failed.append(pod.uid)
