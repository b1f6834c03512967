"""The controller of Jobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from konverge.cache import Event
from konverge.controller import Controller, controller_for
from konverge.errors import Conflict
from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Pod
from konverge.objects import Key, LabelSelector
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.clock import Clock, utc_now
from konverge_cluster.status_writes import controller_client
from konverge_cluster.workloads.jobs.backoff import Failures
from konverge_cluster.workloads.jobs.conditions import is_finished, until_deadline, until_expiry
from konverge_cluster.workloads.jobs.pod_counts import TRACKING
from konverge_cluster.workloads.jobs.sync import JobSync
from konverge_cluster.workloads.pods.controller_refs import claim_objects
from konverge_cluster.workloads.pods.orphans import to_matching_owners
from konverge_cluster.workloads.pods.refused_writes import retry_refused
from konverge_cluster.workloads.pods.selector_index import SelectorIndex

__all__ = ["JobReconciler", "job_controller"]

_CONTROLLER: Final = "kubernetes.io/job-controller"
_MAX_SYNCS: Final = 20


class JobReconciler(Reconciler[Job]):
    """Runs Jobs to completion, sync after sync until one writes nothing; deletes expired Jobs.

    The number of consecutive failures is kept in memory: after a restart the backoff starts with its shortest delay.
    """

    reconcile_terminating: ClassVar[bool] = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._selectors = SelectorIndex()
        self._failures: dict[Key, Failures] = {}

    def map_orphan(self, event: Event) -> Iterable[Key]:
        """Map a pod without a controller to the Jobs that select it."""
        return to_matching_owners(self._selectors, event)

    def gone(self, key: Key) -> None:
        """Forget the selector and the failures of a Job."""
        self._selectors.drop(key)
        self._failures.pop(key, None)

    async def reconcile(self, obj: Job, ctx: Context) -> Result | None:
        """Sync a Job until there is nothing to do now."""
        if obj.spec.managed_by not in (None, _CONTROLLER):
            return Result.done()
        selector = LabelSelector.from_spec(obj.spec.selector)
        self._selectors.put(obj.key, selector)
        current: Job | None = obj
        for _ in range(_MAX_SYNCS):
            if current is None or current.uid != obj.uid:
                return Result.done()
            if is_finished(current):
                self.gone(obj.key)
                return await self._expire(current, ctx)
            try:
                run = await self._sync(current, selector, ctx)
            except Conflict:
                return Result.requeue(reason="the Job or a pod was changed meanwhile")
            if run.error is not None:
                return retry_refused(run.error)
            if not run.wrote:
                return self._next(run)
            current = await ctx.get(Job, obj.key)
        return Result.requeue(reason="the Job is not finished")

    async def _sync(self, job: Job, selector: LabelSelector, ctx: Context) -> JobSync:
        pods = await claim_objects(job, Pod, selector=selector, ctx=ctx, finalizers=(TRACKING,))
        failures = self._failures.get(job.key, Failures())
        run = JobSync(job, pods, ctx, failures=failures, now=utc_now(self._clock))
        try:
            await run.run()
        finally:
            self._failures[job.key] = run.failures
        return run

    def _next(self, run: JobSync) -> Result:
        delays = (run.wait, until_deadline(run.job, utc_now(self._clock)))
        # A deadline that has passed was handled by the sync.
        due = min((wait for wait in delays if wait is not None and wait > 0), default=None)
        return Result.done() if due is None else Result.requeue(due, reason="a backoff or deadline is due")

    async def _expire(self, job: Job, ctx: Context) -> Result:
        """Delete a finished Job when its TTL has expired, also according to the live object."""
        left = until_expiry(job, utc_now(self._clock))
        if left is None:
            return Result.done()
        if left > 0:
            return Result.requeue(left, reason="the TTL of the finished Job")
        live = await ctx.client.get(Job, job.key)
        left = until_expiry(live, utc_now(self._clock))
        if left is not None and left <= 0:
            await controller_client(ctx).delete(live, propagation="Foreground", missing_ok=True)
        return Result.done()


def job_controller(clock: Clock) -> Controller[Job]:
    """Return the controller of Jobs."""
    reconciler = JobReconciler(clock)
    builder = controller_for(Job).named("job-controller").owns(Pod).watches(Pod, reconciler.map_orphan)
    return builder.build(reconciler)
