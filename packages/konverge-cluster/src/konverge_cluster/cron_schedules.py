"""Cron schedules: parsing with the errors of the real server's parser, and the times of a schedule.

Five fields (minute, hour, day of the month, month, day of the week) with `*`, `?`, ranges, steps, lists and English
names; the descriptors `@hourly`, `@daily` and so on; `@every 90m`; and a time zone in front, `TZ=Europe/Paris`.

Rules that every change to this file keeps:

1. A time matches when its wall clock in the zone matches. A wall-clock time that a change to summer time skips does not
   occur on that day, and one that a change to winter time repeats occurs twice.
2. If both the day of the month and the day of the week are restricted, one of them is enough. A field that contains `*`
   or `?` without a step is not restricted.
3. A schedule without a time in the next five years (31 February) has none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from konverge_cluster.api.field_errors import quote

__all__ = ["CronSchedule", "IntervalSchedule", "Schedule", "ScheduleError", "find_zone", "parse_schedule"]

_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec"
_DAYS: Final = "sun mon tue wed thu fri sat"
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_UNIT: Final = r"ns|us|µs|μs|ms|s|m|h"
_DURATION: Final = re.compile(rf"[+-]?(\d+(\.\d*)?({_UNIT}))+|0")
_PART: Final = re.compile(rf"(\d+(?:\.\d*)?)({_UNIT})")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_YEARS: Final = 5
_MAX_DIGITS: Final = 18


class ScheduleError(ValueError):
    """A schedule that cannot be parsed."""


class Schedule(Protocol):
    """Times at which something is due."""

    def next(self, after: datetime) -> datetime | None:
        """Return the first time after another, in UTC; None if there is none."""
        ...


@dataclass(frozen=True)
class _Bounds:
    """The values that a field may have, and their names."""

    low: int
    high: int
    names: dict[str, int]


_BOUNDS: Final = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS.split(), 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS.split())}),
)


@dataclass(frozen=True)
class _Field:
    values: frozenset[int]
    star: bool


@dataclass(frozen=True)
class IntervalSchedule:
    """The times of `@every`: a fixed number of seconds apart."""

    seconds: int

    def next(self, after: datetime) -> datetime | None:
        """Return the time one interval later, in whole seconds."""
        return after.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=self.seconds)


@dataclass(frozen=True)
class CronSchedule:
    """The times whose wall clock in a zone matches five fields."""

    minutes: _Field
    hours: _Field
    days: _Field
    months: _Field
    weekdays: _Field
    zone: tzinfo = UTC

    def next(self, after: datetime) -> datetime | None:
        """Return the first matching time after another, in UTC; None if there is none in five years.

        Time advances by whole minutes, hours, days or months, whichever is the largest that cannot match.
        """
        time = after.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        last_year = time.astimezone(self.zone).year + _YEARS
        while True:
            local = time.astimezone(self.zone)
            if local.year > last_year:
                return None
            if local.month not in self.months.values:
                time = self._start_of_next_month(local)
            elif not self._is_day(local):
                time = self._start_of_day(local.replace(tzinfo=None) + timedelta(days=1))
            elif local.hour not in self.hours.values:
                time += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minutes.values:
                time += timedelta(minutes=1)
            else:
                return time

    def _is_day(self, local: datetime) -> bool:
        day = local.day in self.days.values
        weekday = local.isoweekday() % 7 in self.weekdays.values
        return (day and weekday) if self.days.star or self.weekdays.star else (day or weekday)

    def _start_of_next_month(self, local: datetime) -> datetime:
        month = local.replace(day=1, tzinfo=None) + timedelta(days=32)
        return self._start_of_day(month.replace(day=1))

    def _start_of_day(self, date: datetime) -> datetime:
        # Where a change of time skips midnight, this is the moment of the change.
        return datetime(date.year, date.month, date.day, tzinfo=self.zone).astimezone(UTC)


def find_zone(name: str) -> tzinfo:
    """Return a time zone of the IANA database.

    Raises: ScheduleError when there is none of that name.
    """
    if name in ("", "UTC", "Local"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise ScheduleError(f"unknown time zone {name}") from None


def parse_schedule(text: str, zone: tzinfo = UTC) -> Schedule:
    """Parse a schedule; a time zone in the text wins over `zone`.

    Raises: ScheduleError with the message of the real server.
    """
    if text.startswith(("TZ=", "CRON_TZ=")):
        name, _, text = text.partition("=")[2].partition(" ")
        try:
            zone = find_zone(name)
        except ScheduleError as error:
            raise ScheduleError(f"provided bad location {name}: {error}") from None
        text = text.strip()
    if text.startswith("@every "):
        return _parse_interval(text)
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise ScheduleError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    fields = text.split()
    if len(fields) != len(_BOUNDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minutes, hours, days, months, weekdays = map(_parse_field, fields, _BOUNDS)
    return CronSchedule(minutes, hours, days, months, weekdays, zone)


def _parse_interval(text: str) -> IntervalSchedule:
    duration = text.removeprefix("@every ")
    error = _duration_error(duration)
    if error:
        raise ScheduleError(f"failed to parse duration {text}: time: {error}")
    seconds = sum(float(amount) * _SECONDS[unit] for amount, unit in _PART.findall(duration))
    return IntervalSchedule(max(int(-seconds if duration.startswith("-") else seconds), 1))


def _duration_error(text: str) -> str:
    if _DURATION.fullmatch(text):
        return ""
    amount = re.match(rf"[+-]?(\d+(\.\d*)?({_UNIT}))*\d+(\.\d*)?([^\d.]*)", text)
    if amount is None:
        return f"invalid duration {quote(text)}"
    unit = amount[5]
    what = f"unknown unit {quote(unit)}" if unit else "missing unit"
    return f"{what} in duration {quote(text)}"


def _parse_field(text: str, bounds: _Bounds) -> _Field:
    parts = [_parse_range(part, bounds) for part in text.split(",") if part]
    values = frozenset(value for part in parts for value in part.values)
    return _Field(values, any(part.star for part in parts))


def _parse_range(part: str, bounds: _Bounds) -> _Field:
    limits, *steps = part.split("/")
    ends = limits.split("-")
    star = ends[0] in ("*", "?")
    if star:
        start, end = bounds.low, bounds.high
    else:
        if len(ends) > 2:
            raise ScheduleError(f"too many hyphens: {part}")
        numbers = [bounds.names[each.lower()] if each.lower() in bounds.names else _number(each) for each in ends]
        start, end = numbers[0], numbers[-1]
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {part}")
    step = _number(steps[0]) if steps else 1
    if steps and len(ends) == 1:
        end = bounds.high
    _check_range(part, start, end, bounds)
    if not step:
        raise ScheduleError(f"step of range should be a positive number: {part}")
    return _Field(frozenset(range(start, end + 1, step)), star and step == 1)


def _check_range(part: str, start: int, end: int, bounds: _Bounds) -> None:
    if start < bounds.low:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({bounds.low}): {part}")
    if end > bounds.high:
        raise ScheduleError(f"end of range ({end}) above maximum ({bounds.high}): {part}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {part}")


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        raise ScheduleError(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: invalid syntax")
    if len(text.lstrip("+-0")) > _MAX_DIGITS:
        raise ScheduleError(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: value out of range")
    if int(text) < 0:
        raise ScheduleError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)
