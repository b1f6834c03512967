"""When the next Job of a CronJob is due: the last missed time, and the delay until the next.

Of several missed times only the last one is started. Their number is estimated from the distance between the first two,
since a schedule that was missed for years would take too long to count.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from konverge.k8s.batch.v1 import CronJob
from konverge_cluster.cron_schedules import Schedule, ScheduleError

__all__ = ["MissedRuns", "deadline_exceeded", "delay_until_next", "missed_runs"]

_MANY: Final = 100
_CLOCK_SKEW: Final = 0.1


@dataclass(frozen=True)
class MissedRuns:
    """The last missed time since `since`, None if there is none; `count` is an estimate, 0 for at most one."""

    since: datetime
    last: datetime | None = None
    count: int = 0

    @property
    def many(self) -> bool:
        """Whether so many times were missed that something is wrong."""
        return self.count > _MANY


def missed_runs(cron_job: CronJob, schedule: Schedule, now: datetime, *, with_deadline: bool = True) -> MissedRuns:
    """Return the missed times of a CronJob; with `with_deadline`, only those whose starting deadline is not over.

    Raises: ScheduleError when the schedule has no times.
    """
    since = cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp or now
    deadline = cron_job.spec.starting_deadline_seconds
    if with_deadline and deadline is not None:
        since = max(since, now - timedelta(seconds=deadline))
    first = schedule.next(since)
    if first is None:
        raise ScheduleError("time difference between two schedules is less than 1 second")
    if now < first:
        return MissedRuns(since)
    second = schedule.next(first)
    if second is None or now < second:
        return MissedRuns(since, first)
    interval = round((second - first).total_seconds())
    count = int((now - first).total_seconds()) // interval + 1
    return MissedRuns(since, _last_until(now, first + timedelta(seconds=(count - 2) * interval), schedule), count)


def delay_until_next(cron_job: CronJob, schedule: Schedule, now: datetime) -> float | None:
    """Return in how many seconds the next time is, with some allowance for clocks that differ; None if never."""
    try:
        missed = missed_runs(cron_job, schedule, now, with_deadline=False)
    except ScheduleError:
        return None
    start = missed.last or (now if missed.count else missed.since)
    following = schedule.next(start)
    return None if following is None else max((following - now).total_seconds() + _CLOCK_SKEW, _CLOCK_SKEW)


def deadline_exceeded(cron_job: CronJob, scheduled: datetime, now: datetime) -> bool:
    """Report whether the starting deadline of a time is over."""
    deadline = cron_job.spec.starting_deadline_seconds
    return deadline is not None and scheduled + timedelta(seconds=deadline) < now


def _last_until(now: datetime, start: datetime, schedule: Schedule) -> datetime | None:
    last = None
    time = schedule.next(start)
    while time is not None and time <= now:
        last, time = time, schedule.next(time)
    return last
