"""Timestamps of the built-in kinds: whole seconds, or exactly six decimals, always in UTC.

Go's error text for an invalid time depends on how far its parser gets; `_read` follows the same steps.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime
from typing import Final

from konverge_cluster.api.field_errors import quote
from konverge_cluster.builtins.unmarshal_errors import UnmarshalError

__all__ = ["read_micro_time", "read_time"]

_SECONDS: Final = "2006-01-02T15:04:05Z07:00"
_MICROS: Final = "2006-01-02T15:04:05.000000Z07:00"

_CANONICAL: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_STEPS: Final = (
    ("2006", r"\d{4}"),
    ("-", "-"),
    ("01", r"\d\d"),
    ("-", "-"),
    ("02", r"\d\d"),
    ("T", "T"),
    ("15", r"\d\d?"),
    (":", ":"),
    ("04", r"\d\d"),
    (":", ":"),
    ("05", r"\d\d"),
)
_DATE_STEPS: Final = tuple((name, re.compile(pattern, re.ASCII)) for name, pattern in _STEPS)
# Go accepts fractional seconds even if the layout has none.
_ANY_FRACTION: Final = ("", re.compile(r"([.,]\d+)?", re.ASCII))
_SIX_DECIMALS: Final = (".000000", re.compile(r"\.\d{6}", re.ASCII))
_ZONE: Final = ("Z07:00", re.compile(r"Z|[+-]\d\d:\d\d", re.ASCII))


def read_time(text: str) -> str:
    """Return the time in UTC and whole seconds.

    Raises: UnmarshalError.
    """
    if _CANONICAL.fullmatch(text) and _exists(text):
        return text
    return _write(_read(text, _SECONDS), "seconds")


def read_micro_time(text: str) -> str:
    """Return the time in UTC with six decimals. Like the real server, reject any other number of decimals.

    Raises: UnmarshalError.
    """
    return _write(_read(text, _MICROS), "microseconds")


def _write(time: datetime, unit: str) -> str:
    # Unlike strftime, isoformat writes the year with four digits.
    return time.isoformat(timespec=unit).replace("+00:00", "Z")


def _exists(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _read(text: str, layout: str) -> datetime:
    fraction = _ANY_FRACTION if layout == _SECONDS else _SIX_DECIMALS
    parts = []
    rest = text
    for name, pattern in (*_DATE_STEPS, fraction, _ZONE):
        match = pattern.match(rest)
        if match is None:
            raise UnmarshalError(
                f"parsing time {quote(text)} as {quote(layout)}: cannot parse {quote(rest)} as {quote(name)}"
            )
        parts.append(match[0])
        rest = rest[match.end() :]
    numbers = [int(parts[index]) for index in (0, 2, 4, 6, 8, 10)]
    unit = _out_of_range(*numbers)
    if unit:
        raise UnmarshalError(f"parsing time {quote(text)}: {unit} out of range")
    if rest:
        raise UnmarshalError(f"parsing time {quote(text)}: extra text: {quote(rest)}")
    micros = parts[11][1:7].ljust(6, "0")
    offset = "+00:00" if parts[12] == "Z" else parts[12]
    year, month, day, hour, minute, second = numbers
    whole = f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}.{micros}{offset}"
    try:
        return datetime.fromisoformat(whole).astimezone(UTC)
    except (OverflowError, ValueError):
        raise UnmarshalError(f"parsing time {quote(text)}: year out of range") from None


def _out_of_range(year: int, month: int, day: int, hour: int, minute: int, second: int) -> str:
    if not 1 <= month <= 12:
        return "month"
    if not 1 <= day <= (monthrange(year, month)[1] if year else 31):
        return "day"
    limits = (("hour", hour, 24), ("minute", minute, 60), ("second", second, 60))
    return next((name for name, value, limit in limits if value >= limit), "")
