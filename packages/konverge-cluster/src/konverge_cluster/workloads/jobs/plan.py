"""How many pods a Job shall have now: which go, and how many come, under which indexes, or after which wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Final

from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Pod
from konverge_cluster.workloads.jobs.backoff import Failures, remaining
from konverge_cluster.workloads.jobs.conditions import is_suspended
from konverge_cluster.workloads.jobs.indexes import index_of, indexes_of, pending_indexes
from konverge_cluster.workloads.jobs.tallies import (
    Tally,
    absolute_failures,
    is_indexed,
    only_failed_are_replaced,
)
from konverge_cluster.workloads.pods.facts import finished_at
from konverge_cluster.workloads.pods.removal import to_remove_of_job

__all__ = ["Plan", "plan_of"]

_MOST_AT_ONCE: Final = 500
_SHORTEST_WAIT: Final = 1.0


@dataclass(frozen=True)
class Plan:
    """What is to be done: pods to remove, or pods to create, or a wait. An index of None is a pod without one."""

    remove: list[Pod] = field(default_factory=list)
    create: list[int | None] = field(default_factory=list)
    wait: float | None = None


def plan_of(job: Job, tally: Tally, *, failures: Failures, now: datetime) -> Plan:
    """Decide; removing comes before creating, and after a failure comes a wait."""
    if is_suspended(job):
        return Plan(remove=list(tally.active))
    wanted = _wanted(job, tally)
    surplus = _surplus(job, tally.active, max(len(tally.active) - wanted, 0))
    if surplus:
        return Plan(remove=surplus[:_MOST_AT_ONCE])
    leaving = len(tally.terminating) if only_failed_are_replaced(job) else 0
    missing = min(wanted - leaving - len(tally.active), _MOST_AT_ONCE)
    if missing <= 0:
        return Plan()
    if job.spec.backoff_limit_per_index is None:
        wait = remaining(failures, now)
        if wait > 0:
            return Plan(wait=max(wait, _SHORTEST_WAIT))
    if not is_indexed(job):
        return Plan(create=[None] * missing)
    return _indexed(job, tally, missing=missing, now=now)


def _wanted(job: Job, tally: Tally) -> int:
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    if job.spec.completions is None:
        # Whatever runs may end when one has succeeded; nothing new is begun.
        return len(tally.active) if tally.succeeded else parallelism
    return max(min(job.spec.completions - tally.succeeded, parallelism), 0)


def _surplus(job: Job, active: Sequence[Pod], count: int) -> list[Pod]:
    """Choose pods to remove: those whose index is wrong or taken, and then as many as are too many."""
    wrong = _misplaced(active, job.spec.completions or 0) if is_indexed(job) else []
    gone = {pod.uid for pod in wrong}
    left = [pod for pod in active if pod.uid not in gone]
    return wrong + to_remove_of_job(left, max(count - len(wrong), 0))


def _misplaced(active: Sequence[Pod], completions: int) -> list[Pod]:
    """Give pods without a valid index, and of those with the same index all but the one that is furthest."""

    def place(pod: Pod) -> int:
        index = index_of(pod)
        return -1 if index is None else index

    found: list[Pod] = []
    for index, group in groupby(sorted(active, key=place), key=place):
        pods = list(group)
        valid = 0 <= index < completions
        found += to_remove_of_job(pods, len(pods) - 1) if valid else pods
    return found


def _indexed(job: Job, tally: Tally, *, missing: int, now: datetime) -> Plan:
    taken = tally.done | indexes_of(tally.active) | (tally.given_up or set())
    if only_failed_are_replaced(job):
        taken |= indexes_of(tally.terminating)
    indexes = pending_indexes(taken, completions=job.spec.completions or 0, count=missing)
    waits = {index: _wait_of(tally.to_replace.get(index), now) for index in indexes}
    ready = [index for index in indexes if not waits[index]]
    if indexes and not ready:
        return Plan(wait=max(min(waits.values()), _SHORTEST_WAIT))
    return Plan(create=[*ready])


def _wait_of(replaced: Pod | None, now: datetime) -> float:
    if replaced is None:
        return 0.0
    return remaining(Failures(absolute_failures(replaced) + 1, finished_at(replaced)), now)
