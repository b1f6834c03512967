"""Counting pods that have ended, each once, whatever is interrupted.

First the uids of ended pods are noted in the status, then their finalizers go, and then the numbers grow and the uids
leave the status. A crash after any of these steps loses nothing: who begins anew sees from the finalizers how far it
came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from konverge.k8s.batch.v1 import Job, JobCondition, JobStatus, UncountedTerminatedPods
from konverge.k8s.core.v1 import Pod
from konverge_cluster.workloads.jobs.conditions import SUCCESS
from konverge_cluster.workloads.jobs.indexes import index_of, indexes_text
from konverge_cluster.workloads.jobs.policies import handling_of
from konverge_cluster.workloads.jobs.tallies import Tally, has_failed, is_indexed, is_tracked
from konverge_cluster.workloads.pods.facts import is_being_deleted

__all__ = ["Ledger", "count_released", "note_ended"]

_MOST_NOTED: Final = 500


@dataclass(frozen=True)
class Ledger:
    """Whose finalizers go next; `full` says that the status has no room for more, so that others have to wait."""

    released: list[Pod]
    full: bool = False


def note_ended(job: Job, tally: Tally, *, pods: Sequence[Pod], decided: JobCondition | None) -> Ledger:
    """Note the pods that have ended in the status of the Job; all of them once it is decided how it ends."""
    noted = job.status.uncounted_terminated_pods = job.status.uncounted_terminated_pods or UncountedTerminatedPods()
    done = set(tally.done_before)
    released: list[Pod] = []
    for pod in _in_order(job, pods):
        if not is_tracked(pod) or not _may_go(job, pod, tally, decided):
            continue
        released.append(pod)
        _note(job, pod, noted, done, decided)
        if len(done - tally.done_before) + len(noted.succeeded) + len(noted.failed) >= _MOST_NOTED:
            break
    full = len(done - tally.done_before) + len(noted.succeeded) + len(noted.failed) >= _MOST_NOTED
    if is_indexed(job):
        job.status.succeeded = len(tally.done | done) or None
        job.status.completed_indexes = indexes_text(tally.done | done) or None
        job.status.failed_indexes = indexes_text(tally.given_up) if tally.given_up is not None else None
    return Ledger(released, full)


def count_released(status: JobStatus, tracked: set[str]) -> None:
    """Turn the uids of pods that are no longer held into numbers; `tracked` is the uids of those that are."""
    noted = status.uncounted_terminated_pods
    if noted is None:
        return
    succeeded = [uid for uid in noted.succeeded if uid in tracked]
    failed = [uid for uid in noted.failed if uid in tracked]
    status.succeeded = (status.succeeded or 0) + len(noted.succeeded) - len(succeeded) or None
    status.failed = (status.failed or 0) + len(noted.failed) - len(failed) or None
    status.uncounted_terminated_pods = UncountedTerminatedPods(succeeded=succeeded, failed=failed)


def _in_order(job: Job, pods: Sequence[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: index_of(pod) or 0) if is_indexed(job) else list(pods)


def _may_go(job: Job, pod: Pod, tally: Tally, decided: JobCondition | None) -> bool:
    if is_being_deleted(job) or decided is not None or pod.status.phase == "Succeeded":
        return True
    # The pod that replaces it learns from it how often the index has failed.
    waits = any(pod.uid == other.uid for other in tally.to_replace.values())
    return has_failed(job, pod) and not waits


def _note(job: Job, pod: Pod, noted: UncountedTerminatedPods, done: set[int], decided: JobCondition | None) -> None:
    index = index_of(pod)
    placed = not is_indexed(job) or (index is not None and index < (job.spec.completions or 0))
    if pod.status.phase == "Succeeded" and pod.uid not in noted.failed:
        if is_indexed(job):
            done |= {index} if placed and index is not None else set()
        elif pod.uid not in noted.succeeded:
            noted.succeeded.append(pod.uid)
    elif has_failed(job, pod) or (decided is not None and decided.type != SUCCESS):
        counts = handling_of(job.spec.pod_failure_policy, pod).counts
        if placed and counts and pod.uid not in noted.failed:
            noted.failed.append(pod.uid)
