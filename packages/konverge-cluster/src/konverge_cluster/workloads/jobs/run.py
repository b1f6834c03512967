"""One pass over a Job: count its pods, decide whether it ends, bring the pods to the number that is wanted."""

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
from konverge_cluster.workloads.jobs.backoff import Failures, after
from konverge_cluster.workloads.jobs.conditions import (
    COMPLETE,
    condition_of,
    finish_of,
    is_suspended,
    reached_completions,
    suspension,
    verdict,
)
from konverge_cluster.workloads.jobs.plan import plan_of
from konverge_cluster.workloads.jobs.tallies import TRACKING, Tally, is_tracked, tally_of
from konverge_cluster.workloads.jobs.templates import pod_of_job
from konverge_cluster.workloads.jobs.tracking import count_released, note_ended
from konverge_cluster.workloads.pods.batches import Outcome, in_batches, together
from konverge_cluster.workloads.pods.control import PodControl
from konverge_cluster.workloads.pods.facts import is_being_deleted, is_ready

__all__ = ["RELEASE", "JobRun"]

RELEASE = {"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING]}}
"""The strategic merge patch that lets a counted pod go."""


@dataclass
class _Counts:
    """What the status says of pods that have not ended, kept up while pods come and go."""

    active: int
    ready: int
    terminating: int

    def without(self, removed: Sequence[Pod]) -> None:
        self.active -= len(removed)
        self.ready -= sum(map(is_ready, removed))
        self.terminating += len(removed)


class JobRun:
    """One pass. `wrote` says that it wrote something, `wait` in how many seconds there is something to be done.

    `failures` is what is known of failed pods, and right also when the pass itself fails. A refusal of some writes is
    kept in `problem` until the status is written.
    """

    def __init__(self, job: Job, pods: Sequence[Pod], ctx: Context, *, failures: Failures, now: datetime) -> None:
        self.job = job
        self.failures = failures
        self.wrote = False
        self.wait: float | None = None
        self.problem: KonvergeError | None = None
        self._stored = to_wire(job.status)
        self._pods = pods
        self._ctx = ctx
        self._now = now
        self._client = controller_client(ctx)
        self._control = PodControl(ctx)

    async def run(self) -> None:
        """Do what is due."""
        job, now = self.job, self._now
        tally = tally_of(job, self._pods)
        counts = _Counts(len(tally.active), tally.ready, len(tally.terminating))
        if job.status.start_time is None and not is_suspended(job):
            job.status.start_time = truncate_to_seconds(now)
        failures = after(self.failures, tally.ended_well, tally.ended_badly)
        decided = verdict(job, tally, pods=self._pods, now=now)
        if decided is not None:
            decided = decided if await self._stop(tally, counts) else None
        else:
            if not is_being_deleted(job):
                await self._manage(tally, counts, failures)
            decided = reached_completions(job, succeeded=tally.succeeded, active=counts.active, now=now)
            if decided is None and not is_being_deleted(job):
                self._note_suspension()
        status = job.status
        status.active, status.ready, status.terminating = counts.active or None, counts.ready, counts.terminating
        await self._count(tally, decided, failures)
        if self.problem is not None:
            raise self.problem

    # Pods

    async def _stop(self, tally: Tally, counts: _Counts) -> bool:
        """Delete what still runs; tell whether all of it could be."""
        outcome = await together(tally.active, self._control.delete)
        self._account(outcome)
        counts.without(outcome.done)
        return not outcome.failed

    async def _manage(self, tally: Tally, counts: _Counts, failures: Failures) -> None:
        plan = plan_of(self.job, tally, failures=failures, now=self._now)
        self.wait = plan.wait
        if plan.remove:
            removed = await together(plan.remove, self._remove)
            self._account(removed)
            counts.without(removed.done)
        if plan.create:
            wanted = [pod_of_job(self.job, index, _replaced(tally, index)) for index in plan.create]
            created = await in_batches(wanted, self._control.create)
            self._account(created)
            counts.active += sum(pod is not None for pod in created.done)

    async def _remove(self, pod: Pod) -> Pod:
        """Remove a pod that is not to be counted."""
        await self._release(pod)
        return await self._control.delete(pod)

    async def _release(self, pod: Pod) -> str:
        """Let a pod go; give its uid."""
        if is_tracked(pod):
            try:
                await self._client.patch(Pod, pod.key, RELEASE, patch_type="strategic")
            except NotFound:
                return pod.uid
        return pod.uid

    def _account(self, outcome: Outcome[Pod] | Outcome[Pod | None] | Outcome[str]) -> None:
        self.wrote = self.wrote or bool(outcome.done)
        if outcome.failed and self.problem is None:
            self.problem = outcome.failed[0]

    # Status

    def _note_suspension(self) -> None:
        conditions = suspension(self.job, self._now)
        if conditions is None:
            return
        self.job.status.conditions = conditions
        if is_suspended(self.job):
            self.job.status.start_time = None
            self._ctx.event("Suspended", "Job suspended")
        else:
            # The time that a Job may be active begins anew.
            self.job.status.start_time = truncate_to_seconds(self._now)
            self._ctx.event("Resumed", "Job resumed")

    async def _count(self, tally: Tally, decided: JobCondition | None, failures: Failures) -> None:
        """Note the pods that have ended, let them go, count them, and end the Job if none is left."""
        ledger = note_ended(self.job, tally, pods=self._pods, decided=decided)
        if decided is not None and condition_of(self.job.status.conditions, decided.type) is None:
            self.job.status.conditions.append(decided)
        await self._save()
        # From here on the pods are noted: who begins anew does not see these failures as new ones.
        self.failures = failures
        released = await together(ledger.released, self._release)
        self._account(released)
        tracked = {pod.uid for pod in self._pods if is_tracked(pod)} - set(released.done)
        count_released(self.job.status, tracked)
        finish = self._finish(decided) if decided is not None and not ledger.full else None
        await self._save()
        if finish is not None:
            self._tell(finish)

    def _finish(self, decided: JobCondition) -> JobCondition | None:
        status = self.job.status
        noted = status.uncounted_terminated_pods
        if status.terminating or (noted is not None and (noted.succeeded or noted.failed)):
            return None
        finish = finish_of(decided, self._now)
        status.conditions.append(finish)
        if finish.type == COMPLETE:
            status.completion_time = finish.last_transition_time
        return finish

    def _tell(self, finish: JobCondition) -> None:
        if finish.type != COMPLETE:
            self._ctx.event(finish.reason or "", finish.message or "", warning=True)
            return
        if self.job.spec.completions is not None and (self.job.status.succeeded or 0) > self.job.spec.completions:
            message = "Too many succeeded pods running after completion count reached"
            self._ctx.event("TooManySucceededPods", message, warning=True)
        self._ctx.event("Completed", "Job completed")

    async def _save(self) -> None:
        """Write the status, if it is not the one that is stored."""
        if to_wire(self.job.status) != self._stored:
            self.job = await self._client.update_status(self.job)
            self._stored = to_wire(self.job.status)
            self.wrote = True


def _replaced(tally: Tally, index: int | None) -> Pod | None:
    return tally.to_replace.get(index) if index is not None else None
