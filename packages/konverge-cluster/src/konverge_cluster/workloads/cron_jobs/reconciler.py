"""The controller of CronJobs."""

from __future__ import annotations

from typing import ClassVar

from konverge.controller import Controller, controller_for
from konverge.errors import KonvergeError, NotFound
from konverge.k8s.batch.v1 import CronJob, Job
from konverge.objects import Key
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.clock import Clock, utc_now
from konverge_cluster.cron_schedules import ScheduleError
from konverge_cluster.status_writes import write_status
from konverge_cluster.workloads.cron_jobs.jobs import finished_type
from konverge_cluster.workloads.cron_jobs.sync import CronJobSync, schedule_of
from konverge_cluster.workloads.cron_jobs.times import delay_until_next
from konverge_cluster.workloads.pods.claims import controller_of

__all__ = ["CronJobReconciler", "cron_job_controller"]


class CronJobReconciler(Reconciler[CronJob]):
    """Creates a Job at each time of a schedule, and deletes finished Jobs beyond the history limits.

    A change of the schedule takes effect at the next time of the new one; times that it would have had before are not
    made up for.
    """

    reconcile_terminating: ClassVar[bool] = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._schedules: dict[Key, tuple[str, str, str | None]] = {}  # uid, schedule and time zone that were used last

    def gone(self, key: Key) -> None:
        """Forget the schedule of a CronJob."""
        self._schedules.pop(key, None)

    async def reconcile(self, obj: CronJob, ctx: Context) -> Result | None:
        """Sync a CronJob, and wait for its next time."""
        used = (obj.uid, obj.spec.schedule, obj.spec.time_zone)
        previous = self._schedules.get(obj.key, used)
        self._schedules[obj.key] = used
        if previous != used and previous[0] == obj.uid and not obj.spec.suspend:
            return _requeue(self._delay(obj))
        jobs = [job for job in ctx.owned(Job) if _is_controlled(job, obj)]
        active = {one.uid for one in obj.status.active}
        if any(job.uid not in active and not finished_type(job) for job in jobs):
            live = await _live(obj, ctx)  # the cache may be older than the Jobs
            if live is None:
                return Result.done()
            obj = live
        sync = CronJobSync(obj, sorted(jobs, key=lambda job: job.key), ctx, utc_now(self._clock))
        try:
            delay = await sync.run()
        except KonvergeError:
            await write_status(ctx, obj, sync.status)  # what was done before the error
            raise
        await write_status(ctx, obj, sync.status)
        return _requeue(delay)

    def _delay(self, cron_job: CronJob) -> float | None:
        try:
            return delay_until_next(cron_job, schedule_of(cron_job), utc_now(self._clock))
        except ScheduleError:
            return 0.0  # the sync reports it


def cron_job_controller(clock: Clock) -> Controller[CronJob]:
    """Return the controller of CronJobs."""
    builder = controller_for(CronJob).named("cronjob-controller").owns(Job)
    return builder.needs(Job, "get", "create", "delete").build(CronJobReconciler(clock))


async def _live(cron_job: CronJob, ctx: Context) -> CronJob | None:
    try:
        live = await ctx.client.get(CronJob, cron_job.key)
    except NotFound:
        return None
    return live if live.uid == cron_job.uid else None


def _is_controlled(job: Job, cron_job: CronJob) -> bool:
    owner = controller_of(job)
    return owner is not None and owner.uid == cron_job.uid


def _requeue(delay: float | None) -> Result:
    return Result.done() if delay is None else Result.requeue(delay, reason="the next time of the schedule")
