"""Timestamps and durations: parsing, formatting and parts. All in nanoseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from konverge_cluster.api.field_errors import quote
from konverge_cluster.cel.values import Duration, EvaluationError, Timestamp

__all__ = [
    "format_duration",
    "format_timestamp",
    "local_time",
    "new_timestamp",
    "parse_date",
    "parse_duration",
    "parse_timestamp",
]

SECOND: Final = 1_000_000_000
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,]([0-9]{1,9})[0-9]*)?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LEAST, _MOST = -62135596800, 253402300799


def parse_duration(text: str) -> Duration:
    """Parse a duration such as `1h30m`.

    Raises: ValueError.
    """
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return Duration(0)
    total, at = 0, 0
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None or not (match[1] or match[2]):
            raise ValueError(f"time: invalid duration {text!r}")
        unit = _UNITS[match[3]]
        total += int(match[1] or 0) * unit
        if match[2]:
            total += int(match[2]) * unit // 10 ** len(match[2])
        at = match.end()
    if not rest or total >= 2**63:
        raise ValueError(f"time: invalid duration {text!r}")
    return Duration(-total if text.startswith("-") else total)


def parse_timestamp(text: str) -> Timestamp:
    """Parse an RFC 3339 time.

    Raises: ValueError.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"cannot parse {text!r} as a time")
    east = 0 if match[4] == "Z" else _offset(match[4])
    whole = datetime.fromisoformat(f"{match[1]}T{match[2]}+00:00")
    return Timestamp((_seconds(whole) - east) * SECOND + int((match[3] or "0").ljust(9, "0")), east)


def parse_date(text: str) -> Timestamp:
    """Parse a date as its start in UTC.

    Raises: ValueError.
    """
    return Timestamp(_seconds(datetime.fromisoformat(text).replace(tzinfo=UTC)) * SECOND)


def _seconds(when: datetime) -> int:
    apart = when - _EPOCH
    return apart.days * 86400 + apart.seconds


def new_timestamp(nanos: int, east: int = 0) -> Timestamp:
    """Return a timestamp, if it is in range.

    Raises: EvaluationError.
    """
    if not _LEAST <= nanos // SECOND <= _MOST:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanos, east)


def format_timestamp(value: Timestamp) -> str:
    text = local_time(value).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    nanos = value.nanos % SECOND
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    hours, minutes = divmod(abs(value.east) // 60, 60)
    zone = f"{'-' if value.east < 0 else '+'}{hours:02d}:{minutes:02d}" if value.east else "Z"
    return f"{text}{fraction}{zone}"


def format_duration(value: Duration) -> str:
    sign = "-" if value.nanos < 0 else ""
    seconds, nanos = divmod(abs(value.nanos), SECOND)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{sign}{seconds}{fraction}s"


def local_time(value: Timestamp, zone: str | None = None) -> datetime:
    """Return a timestamp in a time zone: its own, a named one, or an offset (`-07:30`).

    Raises: EvaluationError.
    """
    seconds = value.nanos // SECOND
    try:
        if zone is None or ":" in zone:
            return _EPOCH + timedelta(seconds=seconds + (value.east if zone is None else _offset(zone)))
        return (_EPOCH + timedelta(seconds=seconds)).astimezone(_zone(zone))
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None


def _offset(text: str) -> int:
    """Return the seconds east of UTC; any number of hours is valid.

    Raises: EvaluationError.
    """
    hours, _, minutes = text.partition(":")
    for part in (hours, minutes):
        if not _WHOLE.fullmatch(part):
            raise EvaluationError(f"strconv.Atoi: parsing {quote(part)}: invalid syntax")
    apart = int(minutes) * 60
    return int(hours) * 3600 + (-apart if text.startswith("-") else apart)


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name in ("", "UTC") else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None
