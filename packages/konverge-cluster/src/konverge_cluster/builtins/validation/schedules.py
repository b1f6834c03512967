"""Validation of cron schedules and time zones, with the errors of the real server."""

from __future__ import annotations

import re
from typing import Final

from konverge_cluster.api.field_errors import invalid
from konverge_cluster.builtins.validation.values import FieldErrors
from konverge_cluster.cron_schedules import ScheduleError, find_zone, parse_schedule

__all__ = ["validate_schedule_format", "validate_time_zone"]

_ZONE_PART: Final = re.compile(r"[A-Za-z0-9._\-+]+")


def validate_schedule_format(
    schedule: str, path: str, *, zone: str | None, allow_time_zone: bool = False
) -> FieldErrors:
    """Validate a schedule. A time zone in it is allowed only if the old schedule had one."""
    try:
        parse_schedule(schedule)
    except ScheduleError as error:
        yield invalid(path, schedule, str(error))
    if "TZ" in schedule:
        if not allow_time_zone:
            yield invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        elif zone is not None:
            yield invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


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
    try:
        find_zone(zone)
    except ScheduleError as error:
        yield invalid(path, zone, str(error))
