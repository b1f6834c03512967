"""One sync of a Job: count its pods, decide whether it finishes, create or delete pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from konverge.errors import KonvergeError, NotFound
from konverge.k8s.batch.v1 import Job, JobCondition
from konverge.k8s.core.v1 import Pod
from konverge.objects import to_wire
from konverge.reconcile import Context
from konverge_cluster.clock import truncate_to_seconds
from konverge_cluster.status_writes import controller_client
from konverge_cluster.workloads.jobs.backoff import Failures, update_failures
from konverge_cluster.workloads.jobs.conditions import (
    COMPLETE,
    completions_condition,
    condition_of,
    finished_condition,
    is_suspended,
    suspended_conditions,
    target_condition,
)
from konverge_cluster.workloads.jobs.pod_actions import next_pod_actions
from konverge_cluster.workloads.jobs.pod_counts import TRACKING, PodCounts, count_pods, is_tracked
from konverge_cluster.workloads.jobs.templates import new_job_pod
from konverge_cluster.workloads.jobs.uncounted_pods import add_uncounted, flush_uncounted
from konverge_cluster.workloads.pods.batches import BatchResult, run_all, slow_start
from konverge_cluster.workloads.pods.control import PodControl
from konverge_cluster.workloads.pods.facts import is_being_deleted, is_ready

__all__ = ["REMOVE_FINALIZER", "JobSync"]

REMOVE_FINALIZER = {"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING]}}
"""The strategic merge patch that removes the tracking finalizer of a counted pod."""


@dataclass
class _StatusCounts:
    """Counts of unfinished pods for the status, updated as pods are created and deleted."""

    active: int
    ready: int
    terminating: int

    def subtract(self, deleted: Sequence[Pod]) -> None:
        self.active -= len(deleted)
        self.ready -= sum(map(is_ready, deleted))
        self.terminating += len(deleted)


class JobSync:
    """One sync. `wrote` means that it wrote something, `wait` is how many seconds until there is something to do.

    `failures` is the failure history; it is correct even if the sync itself fails. The first failed write is
    kept in `error`, for the caller to retry.
    """

    def __init__(self, job: Job, pods: Sequence[Pod], ctx: Context, *, failures: Failures, now: datetime) -> None:
        self.job = job
        self.failures = failures
        self.wrote = False
        self.wait: float | None = None
        self.error: KonvergeError | None = None
        self._stored = to_wire(job.status)
        self._pods = pods
        self._ctx = ctx
        self._now = now
        self._client = controller_client(ctx)
        self._control = PodControl(ctx)

    async def run(self) -> None:
        """Run the sync."""
        job, now = self.job, self._now
        counts = count_pods(job, self._pods)
        totals = _StatusCounts(len(counts.active), counts.ready, len(counts.terminating))
        if job.status.start_time is None and not is_suspended(job):
            job.status.start_time = truncate_to_seconds(now)
        failures = update_failures(self.failures, counts.uncounted_succeeded, counts.uncounted_failed)
        target = target_condition(job, counts, pods=self._pods, now=now)
        if target is not None:
            target = target if await self._stop(counts, totals) else None
        else:
            if not is_being_deleted(job):
                await self._manage(counts, totals, failures)
            target = completions_condition(job, succeeded=counts.succeeded, active=totals.active, now=now)
            if target is None and not is_being_deleted(job):
                self._update_suspended()
        status = job.status
        status.active, status.ready, status.terminating = totals.active or None, totals.ready, totals.terminating
        await self._count(counts, target, failures)

    # Pods

    async def _stop(self, counts: PodCounts, totals: _StatusCounts) -> bool:
        """Delete the active pods; report whether all deletions succeeded."""
        result = await run_all(counts.active, self._control.delete)
        self._record(result)
        totals.subtract(result.done)
        return not result.failed

    async def _manage(self, counts: PodCounts, totals: _StatusCounts, failures: Failures) -> None:
        actions = next_pod_actions(self.job, counts, failures=failures, now=self._now)
        self.wait = actions.wait
        if actions.delete:
            deleted = await run_all(actions.delete, self._delete)
            self._record(deleted)
            totals.subtract(deleted.done)
        if actions.create:
            pods = [new_job_pod(self.job, index, _replaced(counts, index)) for index in actions.create]
            created = await slow_start(pods, self._control.create)
            self._record(created)
            totals.active += sum(pod is not None for pod in created.done)

    async def _delete(self, pod: Pod) -> Pod:
        """Delete a pod that is not to be counted."""
        await self._release(pod)
        return await self._control.delete(pod)

    async def _release(self, pod: Pod) -> str:
        """Remove the finalizer of a pod; return its uid."""
        if is_tracked(pod):
            try:
                await self._client.patch(Pod, pod.key, REMOVE_FINALIZER, patch_type="strategic")
            except NotFound:
                return pod.uid
        return pod.uid

    def _record(self, result: BatchResult[Pod] | BatchResult[Pod | None] | BatchResult[str]) -> None:
        self.wrote = self.wrote or bool(result.done)
        if result.failed and self.error is None:
            self.error = result.failed[0]

    # Status

    def _update_suspended(self) -> None:
        conditions = suspended_conditions(self.job, self._now)
        if conditions is None:
            return
        self.job.status.conditions = conditions
        if is_suspended(self.job):
            self.job.status.start_time = None
            self._ctx.event("Suspended", "Job suspended")
        else:
            # The active deadline starts over.
            self.job.status.start_time = truncate_to_seconds(self._now)
            self._ctx.event("Resumed", "Job resumed")

    async def _count(self, counts: PodCounts, target: JobCondition | None, failures: Failures) -> None:
        """Record terminated pods, remove their finalizers, count them, and finish the Job if none is left."""
        update = add_uncounted(self.job, counts, pods=self._pods, target=target)
        if target is not None and condition_of(self.job.status.conditions, target.type) is None:
            self.job.status.conditions.append(target)
        await self._save()
        # From here on the status has these pods: after a restart they do not count as new failures.
        self.failures = failures
        released = await run_all(update.released, self._release)
        self._record(released)
        tracked = {pod.uid for pod in self._pods if is_tracked(pod)} - set(released.done)
        flush_uncounted(self.job.status, tracked)
        finish = self._finish(target) if target is not None and not update.full else None
        await self._save()
        if finish is not None:
            self._record_event(finish)

    def _finish(self, target: JobCondition) -> JobCondition | None:
        status = self.job.status
        uncounted = status.uncounted_terminated_pods
        if status.terminating or (uncounted is not None and (uncounted.succeeded or uncounted.failed)):
            return None
        finish = finished_condition(target, self._now)
        status.conditions.append(finish)
        if finish.type == COMPLETE:
            status.completion_time = finish.last_transition_time
        return finish

    def _record_event(self, finish: JobCondition) -> None:
        if finish.type != COMPLETE:
            self._ctx.event(finish.reason or "", finish.message or "", warning=True)
            return
        if self.job.spec.completions is not None and (self.job.status.succeeded or 0) > self.job.spec.completions:
            message = "Too many succeeded pods running after completion count reached"
            self._ctx.event("TooManySucceededPods", message, warning=True)
        self._ctx.event("Completed", "Job completed")

    async def _save(self) -> None:
        """Write the status unless it equals the stored one."""
        if to_wire(self.job.status) != self._stored:
            self.job = await self._client.update_status(self.job)
            self._stored = to_wire(self.job.status)
            self.wrote = True


def _replaced(counts: PodCounts, index: int | None) -> Pod | None:
    return counts.pods_to_replace.get(index) if index is not None else None
