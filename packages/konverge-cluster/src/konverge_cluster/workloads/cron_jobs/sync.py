"""One sync of a CronJob: history, the list of active Jobs, and the Job that is due."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from konverge.errors import AlreadyExists, KonvergeError, NotFound
from konverge.k8s.batch.v1 import CronJob, CronJobStatus, Job
from konverge.k8s.core.v1 import ObjectReference
from konverge.objects import Key
from konverge.reconcile import Context
from konverge_cluster.cron_schedules import Schedule, ScheduleError, find_zone, parse_schedule
from konverge_cluster.server_messages import is_namespace_terminating, server_message
from konverge_cluster.status_writes import controller_client
from konverge_cluster.workloads.cron_jobs.jobs import (
    expired_jobs,
    finished_type,
    job_name,
    new_job,
    reference_to,
    succeeded,
)
from konverge_cluster.workloads.cron_jobs.times import deadline_exceeded, delay_until_next, missed_runs
from konverge_cluster.workloads.pods.claims import controller_of

__all__ = ["CronJobSync", "schedule_of"]

_MISSED: Final = "%a, %d %b %Y %H:%M:%S +0000"
_OUTDATED: Final = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
_UNSUPPORTED: Final = (
    "CRON_TZ or TZ used in schedule {} is not officially supported, see"
    " https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)


def schedule_of(cron_job: CronJob) -> Schedule:
    """Return the schedule of a CronJob in its time zone; without one it is UTC.

    Raises: ScheduleError.
    """
    zone = find_zone("" if "TZ" in cron_job.spec.schedule else cron_job.spec.time_zone or "")
    return parse_schedule(cron_job.spec.schedule, zone)


class CronJobSync:
    """One sync. `status` is the new status, which the caller writes, also when the sync fails.

    A Job that was created before a crash is found again by its name, so that each time has at most one Job.
    """

    def __init__(self, cron_job: CronJob, jobs: Sequence[Job], ctx: Context, now: datetime) -> None:
        old = cron_job.status
        self.cron_job = cron_job
        self.status = CronJobStatus(
            active=list(old.active),
            last_schedule_time=old.last_schedule_time,
            last_successful_time=old.last_successful_time,
        )
        self._jobs = jobs
        self._ctx = ctx
        self._now = now
        self._client = controller_client(ctx)

    async def run(self) -> float | None:
        """Run the sync; return in how many seconds the next is due, None for never."""
        cron_job = self.cron_job
        for job in expired_jobs(cron_job, self._jobs):
            await self._delete(job)
        for job in self._jobs:
            self._observe(job)
        await self._drop_missing()
        if cron_job.metadata.deletion_timestamp is not None or cron_job.spec.suspend:
            return None
        schedule = self._schedule()
        if schedule is None:
            return None
        try:
            missed = missed_runs(cron_job, schedule, self._now)
        except ScheduleError as error:
            self._warn("InvalidSchedule", f"invalid schedule: {cron_job.spec.schedule} : {error}")
            return None
        if missed.last is not None:
            if missed.many:
                self._warn("TooManyMissedTimes", _OUTDATED)
            await self._start(missed.last)
        started = CronJob(metadata=cron_job.metadata, spec=cron_job.spec, status=self.status)
        return delay_until_next(started, schedule, self._now)

    # Existing Jobs

    def _observe(self, job: Job) -> None:
        """Update the active list and the time of the last success for one Job."""
        active = any(one.uid == job.uid for one in self.status.active)
        finished = finished_type(job)
        if not finished:
            if not active:
                self._warn("UnexpectedJob", f"Saw a job that the controller did not create or forgot: {job.name}")
            return
        if active:
            self._drop(job.uid)
            self._event("SawCompletedJob", f"Saw completed job: {job.name}, condition: {finished}")
        completed = job.status.completion_time if succeeded(job) else None
        last = self.status.last_successful_time
        if completed is not None and (last is None or completed > last):
            self.status.last_successful_time = completed

    async def _drop_missing(self) -> None:
        """Drop references to Jobs that no longer exist, also according to the server."""
        present = {job.uid for job in self._jobs}
        for one in list(self.status.active):
            if one.uid in present:
                continue
            try:
                await self._client.get(Job, _key(one))
            except NotFound:
                self._event("MissingJob", f"Active job went missing: {one.name}")
                self._drop(one.uid)

    def _drop(self, uid: str | None) -> None:
        self.status.active = [one for one in self.status.active if one.uid != uid]

    async def _delete(self, job: Job) -> bool:
        """Delete a Job and its reference; report whether that succeeded."""
        try:
            await self._client.delete(job, propagation="Background", missing_ok=True)
        except KonvergeError as error:
            self._warn("FailedDelete", f"Deleted job: {server_message(error)}")
            return False
        self._drop(job.uid)
        self._event("SuccessfulDelete", f"Deleted job {job.name}")
        return True

    # The Job that is due

    def _schedule(self) -> Schedule | None:
        spec = self.cron_job.spec
        try:
            find_zone(spec.time_zone or "")
        except ScheduleError as error:
            self._warn("UnknownTimeZone", f'invalid timeZone: "{spec.time_zone}": {error}')
            return None
        if "TZ" in spec.schedule:
            self._warn("UnsupportedSchedule", _UNSUPPORTED.format(f'"{spec.schedule}"'))
        try:
            return schedule_of(self.cron_job)
        except ScheduleError as error:
            self._warn("UnparseableSchedule", f'unparseable schedule: "{spec.schedule}" : {error}')
            return None

    async def _start(self, scheduled: datetime) -> None:
        """Create the Job of a time, unless it is too late, already there, or not allowed beside others."""
        spec = self.cron_job.spec
        if deadline_exceeded(self.cron_job, scheduled, self._now):
            self._warn("MissSchedule", f"Missed scheduled time to start a job: {scheduled.strftime(_MISSED)}")
            return
        name = job_name(self.cron_job, scheduled)
        if any(one.name == name for one in self.status.active) or self.status.last_schedule_time == scheduled:
            return
        if spec.concurrency_policy == "Forbid" and self.status.active:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._event("JobAlreadyActive", text)
            return
        if spec.concurrency_policy == "Replace":
            await self._replace()
        job = await self._create(scheduled)
        if job is not None:
            self.status.active.append(reference_to(job))
            self.status.last_schedule_time = scheduled
            if finished_type(job):
                self._observe(job)

    async def _replace(self) -> None:
        """Delete the active Jobs.

        Raises: KonvergeError when one cannot be deleted.
        """
        for one in list(self.status.active):
            try:
                job = await self._client.get(Job, _key(one))
            except KonvergeError as error:
                self._warn("FailedGet", f"Get job: {server_message(error)}")
                raise
            if not await self._delete(job):
                raise KonvergeError(f"could not replace job {job.namespace}/{job.name}")

    async def _create(self, scheduled: datetime) -> Job | None:
        """Create a Job, or find the one that was created before a crash; None if neither is possible."""
        wanted = new_job(self.cron_job, scheduled)
        try:
            created = await self._client.create(wanted)
        except AlreadyExists:
            present = await self._client.get(Job, wanted.key)
            owner = controller_of(present)
            is_own = owner is not None and owner.uid == self.cron_job.uid
            return present if is_own else None
        except KonvergeError as error:
            if is_namespace_terminating(error):
                return None
            self._warn("FailedCreate", f"Error creating job: {server_message(error)}")
            raise
        self._event("SuccessfulCreate", f"Created job {created.name}")
        return created

    def _event(self, reason: str, message: str) -> None:
        self._ctx.event(reason, message)

    def _warn(self, reason: str, message: str) -> None:
        self._ctx.event(reason, message, warning=True)


def _key(reference: ObjectReference) -> Key:
    return Key(reference.namespace or "", reference.name or "")
