"""Validation of cron schedules, with the errors of the real server's parser."""

from __future__ import annotations

import re
from typing import Final
from zoneinfo import ZoneInfo

from konverge_cluster.api.field_errors import invalid, quote
from konverge_cluster.builtins.validation.values import FieldErrors

__all__ = ["validate_schedule_format", "validate_time_zone"]

_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec"
_DAYS: Final = "sun mon tue wed thu fri sat"
_BOUNDS: Final[tuple[tuple[int, int, dict[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS.split(), 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS.split())}),
)
_DESCRIPTORS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_ZONE_PART: Final = re.compile(r"[A-Za-z0-9._\-+]+")
_DURATION: Final = re.compile(r"[+-]?(\d+(\.\d*)?(ns|us|µs|μs|ms|s|m|h))+|0")


class _ScheduleError(ValueError):
    """A schedule that cannot be parsed."""


def validate_schedule_format(
    schedule: str, path: str, *, zone: str | None, allow_time_zone: bool = False
) -> FieldErrors:
    """Validate a schedule. A time zone in it is allowed only if the old schedule had one."""
    try:
        _parse(schedule)
    except _ScheduleError as error:
        yield invalid(path, schedule, str(error))
    if "TZ" in schedule:
        if not allow_time_zone:
            yield invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        elif zone is not None:
            yield invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def _parse(schedule: str) -> None:
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        zone, _, schedule = schedule.partition("=")[2].partition(" ")
        if not _zone_exists(zone):
            raise _ScheduleError(f"provided bad location {zone}: unknown time zone {zone}")
        schedule = schedule.strip()
    if schedule.startswith("@"):
        _parse_descriptor(schedule)
        return
    fields = schedule.split()
    if len(fields) != len(_BOUNDS):
        raise _ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, (low, high, names) in zip(fields, _BOUNDS, strict=True):
        for part in filter(None, field.split(",")):
            _parse_range(part, low, high, names)


def _parse_descriptor(text: str) -> None:
    if text.startswith("@every "):
        error = _duration_error(text.removeprefix("@every "))
        if error:
            raise _ScheduleError(f"failed to parse duration {text}: time: {error}")
    elif text not in _DESCRIPTORS:
        raise _ScheduleError(f"unrecognized descriptor: {text}")


def _duration_error(text: str) -> str:
    if _DURATION.fullmatch(text):
        return ""
    amount = re.match(r"[+-]?(\d+(\.\d*)?(ns|us|µs|μs|ms|s|m|h))*\d+(\.\d*)?([^\d.]*)", text)
    if amount is None:
        return f"invalid duration {quote(text)}"
    unit = amount[5]
    what = f"unknown unit {quote(unit)}" if unit else "missing unit"
    return f"{what} in duration {quote(text)}"


def _parse_range(part: str, low: int, high: int, names: dict[str, int]) -> None:
    bounds, *steps = part.split("/")
    ends = bounds.split("-")
    if ends[0] in ("*", "?"):
        start, end = low, high
    else:
        if len(ends) > 2:
            raise _ScheduleError(f"too many hyphens: {part}")
        numbers = [names[each.lower()] if each.lower() in names else _number(each) for each in ends]
        start, end = numbers[0], numbers[-1]
    if len(steps) > 1:
        raise _ScheduleError(f"too many slashes: {part}")
    step = _number(steps[0]) if steps else 1
    if steps and len(ends) == 1:
        end = high
    if start < low:
        raise _ScheduleError(f"beginning of range ({start}) below minimum ({low}): {part}")
    if end > high:
        raise _ScheduleError(f"end of range ({end}) above maximum ({high}): {part}")
    if start > end:
        raise _ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if not step:
        raise _ScheduleError(f"step of range should be a positive number: {part}")


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        raise _ScheduleError(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: invalid syntax")
    if int(text) < 0:
        raise _ScheduleError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def validate_time_zone(zone: str | None, path: str) -> FieldErrors:
    if zone is None:
        return
    if not zone:
        yield invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            yield invalid(path, zone, f"unknown time zone {zone}")
            return
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid(path, zone, text)
    if not _zone_exists(zone):
        yield invalid(path, zone, f"unknown time zone {zone}")


def _zone_exists(zone: str) -> bool:
    if zone in ("", "UTC", "Local"):
        return True
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, LookupError):
        return False
    return True
