"""What to do about the pods of a Job now: which to delete, which to create, or how long to wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Final

from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Pod
from konverge_cluster.workloads.jobs.backoff import Failures, remaining_backoff
from konverge_cluster.workloads.jobs.conditions import is_suspended
from konverge_cluster.workloads.jobs.indexes import index_of, indexes_of, pending_indexes
from konverge_cluster.workloads.jobs.pod_counts import (
    PodCounts,
    absolute_failures,
    is_indexed,
    replaces_only_failed,
)
from konverge_cluster.workloads.pods.deletion_order import job_pods_to_delete
from konverge_cluster.workloads.pods.facts import finished_at

__all__ = ["PodActions", "next_pod_actions"]

_MAX_BURST: Final = 500
_MIN_DELAY: Final = 1.0


@dataclass(frozen=True)
class PodActions:
    """Pods to delete, or indexes of pods to create (None: a pod without an index), or a delay."""

    delete: list[Pod] = field(default_factory=list)
    create: list[int | None] = field(default_factory=list)
    wait: float | None = None


def next_pod_actions(job: Job, counts: PodCounts, *, failures: Failures, now: datetime) -> PodActions:
    """Return the next actions; deletion comes before creation, and a failure delays creation."""
    if is_suspended(job):
        return PodActions(delete=list(counts.active))
    desired = _desired(job, counts)
    surplus = _surplus(job, counts.active, max(len(counts.active) - desired, 0))
    if surplus:
        return PodActions(delete=surplus[:_MAX_BURST])
    terminating = len(counts.terminating) if replaces_only_failed(job) else 0
    missing = min(desired - terminating - len(counts.active), _MAX_BURST)
    if missing <= 0:
        return PodActions()
    if job.spec.backoff_limit_per_index is None:
        wait = remaining_backoff(failures, now)
        if wait > 0:
            return PodActions(wait=max(wait, _MIN_DELAY))
    if not is_indexed(job):
        return PodActions(create=[None] * missing)
    return _indexed(job, counts, missing=missing, now=now)


def _desired(job: Job, counts: PodCounts) -> int:
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    if job.spec.completions is None:
        # Active pods may finish after the first success; no new ones are created.
        return len(counts.active) if counts.succeeded else parallelism
    return max(min(job.spec.completions - counts.succeeded, parallelism), 0)


def _surplus(job: Job, active: Sequence[Pod], count: int) -> list[Pod]:
    """Return pods to delete: those with an invalid or duplicate index, then as many as are too many."""
    invalid = _invalid_indexes(active, job.spec.completions or 0) if is_indexed(job) else []
    invalid_uids = {pod.uid for pod in invalid}
    remaining_pods = [pod for pod in active if pod.uid not in invalid_uids]
    return invalid + job_pods_to_delete(remaining_pods, max(count - len(invalid), 0))


def _invalid_indexes(active: Sequence[Pod], completions: int) -> list[Pod]:
    """Return pods without a valid index, and all but the furthest of pods with the same index."""

    def index_key(pod: Pod) -> int:
        index = index_of(pod)
        return -1 if index is None else index

    found: list[Pod] = []
    for index, group in groupby(sorted(active, key=index_key), key=index_key):
        pods = list(group)
        valid = 0 <= index < completions
        found += job_pods_to_delete(pods, len(pods) - 1) if valid else pods
    return found


def _indexed(job: Job, counts: PodCounts, *, missing: int, now: datetime) -> PodActions:
    used = counts.completed | indexes_of(counts.active) | (counts.failed_indexes or set())
    if replaces_only_failed(job):
        used |= indexes_of(counts.terminating)
    indexes = pending_indexes(used, completions=job.spec.completions or 0, count=missing)
    delays = {index: _backoff_of(counts.pods_to_replace.get(index), now) for index in indexes}
    ready = [index for index in indexes if not delays[index]]
    if indexes and not ready:
        return PodActions(wait=max(min(delays.values()), _MIN_DELAY))
    return PodActions(create=[*ready])


def _backoff_of(replaced: Pod | None, now: datetime) -> float:
    if replaced is None:
        return 0.0
    return remaining_backoff(Failures(absolute_failures(replaced) + 1, finished_at(replaced)), now)
