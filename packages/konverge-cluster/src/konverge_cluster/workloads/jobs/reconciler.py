"""The controller of Jobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from konverge.cache import Event
from konverge.controller import Controller, controller_for
from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Pod
from konverge.objects import Key, LabelSelector
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.clock import Clock, utc_now
from konverge_cluster.status_writes import controller_client
from konverge_cluster.workloads.jobs.backoff import Failures
from konverge_cluster.workloads.jobs.conditions import is_finished, until_deadline
from konverge_cluster.workloads.jobs.expiry import until_expiry
from konverge_cluster.workloads.jobs.run import JobRun
from konverge_cluster.workloads.jobs.tallies import TRACKING
from konverge_cluster.workloads.pods.holdings import hold
from konverge_cluster.workloads.pods.orphans import wanted_by
from konverge_cluster.workloads.pods.selections import Selections

__all__ = ["JobReconciler", "job_controller"]

_CONTROLLER: Final = "kubernetes.io/job-controller"
_MOST_PASSES: Final = 20


class JobReconciler(Reconciler[Job]):
    """Runs Jobs to their end, one pass after the other, until a pass has nothing to write; and deletes old ones.

    How often pods of a Job failed in a row is kept in memory: after a restart the first wait is the shortest.
    """

    reconcile_terminating: ClassVar[bool] = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._selections = Selections()
        self._failures: dict[Key, Failures] = {}

    def wanting(self, event: Event) -> Iterable[Key]:
        """Map a pod without a controller to the Jobs that select it."""
        return wanted_by(self._selections, event)

    def gone(self, key: Key) -> None:
        """Forget what a Job selected and how it failed."""
        self._selections.drop(key)
        self._failures.pop(key, None)

    async def reconcile(self, obj: Job, ctx: Context) -> Result | None:
        """Take a Job as far as it goes now."""
        if obj.spec.managed_by not in (None, _CONTROLLER):
            return Result.done()
        selector = LabelSelector.from_spec(obj.spec.selector)
        self._selections.put(obj.key, selector)
        current: Job | None = obj
        for _ in range(_MOST_PASSES):
            if current is None or current.uid != obj.uid:
                return Result.done()
            if is_finished(current):
                self.gone(obj.key)
                return await self._expire(current, ctx)
            run = await self._pass(current, selector, ctx)
            if not run.wrote:
                return self._next(run)
            current = await ctx.get(Job, obj.key)
        return Result.requeue(reason="the Job goes on")

    async def _pass(self, job: Job, selector: LabelSelector, ctx: Context) -> JobRun:
        pods = await hold(job, Pod, selector=selector, ctx=ctx, finalizers=(TRACKING,))
        failures = self._failures.get(job.key, Failures())
        run = JobRun(job, pods, ctx, failures=failures, now=utc_now(self._clock))
        try:
            await run.run()
        finally:
            self._failures[job.key] = run.failures
        return run

    def _next(self, run: JobRun) -> Result:
        waits = (run.wait, until_deadline(run.job, utc_now(self._clock)))
        # A deadline that has passed has been judged.
        due = min((wait for wait in waits if wait is not None and wait > 0), default=None)
        return Result.done() if due is None else Result.requeue(due, reason="a wait of the Job is over")

    async def _expire(self, job: Job, ctx: Context) -> Result:
        """Delete a finished Job when its time has come, if the server says so too."""
        left = until_expiry(job, utc_now(self._clock))
        if left is None:
            return Result.done()
        if left > 0:
            return Result.requeue(left, reason="the time of a finished Job is over")
        fresh = await ctx.client.get(Job, job.key)
        left = until_expiry(fresh, utc_now(self._clock))
        if left is not None and left <= 0:
            await controller_client(ctx).delete(fresh, propagation="Foreground", missing_ok=True)
        return Result.done()


def job_controller(clock: Clock) -> Controller[Job]:
    """Give the controller of Jobs."""
    reconciler = JobReconciler(clock)
    builder = controller_for(Job).named("job-controller").owns(Pod).watches(Pod, reconciler.wanting)
    return builder.build(reconciler)
