"""Timestamps and durations: how they are read, written, and taken apart. All in nanoseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from konverge.controlplane.cel.values import Duration, EvaluationError, Timestamp

__all__ = [
    "duration_text",
    "local_time",
    "moment",
    "read_date",
    "read_duration",
    "read_timestamp",
    "timestamp_text",
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
_OFFSET: Final = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{2})")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LEAST, _MOST = -62135596800, 253402300799


def read_duration(text: str) -> Duration:
    """Read `1h30m`.

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


def read_timestamp(text: str) -> Timestamp:
    """Read an RFC 3339 time.

    Raises: ValueError.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"cannot parse {text!r} as a time")
    zone = "+00:00" if match[4] == "Z" else match[4]
    whole = datetime.fromisoformat(f"{match[1]}T{match[2]}{zone}")
    return Timestamp(_seconds(whole) * SECOND + int((match[3] or "0").ljust(9, "0")))


def read_date(text: str) -> Timestamp:
    """Read a date as its first moment in UTC.

    Raises: ValueError.
    """
    return Timestamp(_seconds(datetime.fromisoformat(text).replace(tzinfo=UTC)) * SECOND)


def _seconds(when: datetime) -> int:
    apart = when - _EPOCH
    return apart.days * 86400 + apart.seconds


def moment(nanos: int) -> Timestamp:
    """A timestamp, if there is one of this size.

    Raises: EvaluationError.
    """
    if not _LEAST <= nanos // SECOND <= _MOST:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanos)


def timestamp_text(value: Timestamp) -> str:
    seconds, nanos = divmod(value.nanos, SECOND)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{text}{fraction}Z"


def duration_text(value: Duration) -> str:
    sign = "-" if value.nanos < 0 else ""
    seconds, nanos = divmod(abs(value.nanos), SECOND)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{sign}{seconds}{fraction}s"


def local_time(value: Timestamp, zone: str = "UTC") -> datetime:
    """A timestamp as the clocks of a time zone show it; the zone is a name or an offset (`-07:30`).

    Raises: EvaluationError.
    """
    return (_EPOCH + timedelta(seconds=value.nanos // SECOND)).astimezone(_zone(zone))


def _zone(name: str) -> tzinfo:
    match = _OFFSET.fullmatch(name)
    if match is not None:
        apart = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-apart if match[1] == "-" else apart)
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None
