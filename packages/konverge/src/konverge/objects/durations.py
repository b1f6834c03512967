"""Durations in the format of Go: "1h30m", "100ms", "1.5s".

As with quantities, a decoded `Duration` keeps its text and parses it on first use. The largest unit is the hour: days
differ in length.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

__all__ = ["Duration"]

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, the micro sign
    "μs": 1_000,  # U+03BC, the Greek letter
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_MAX: Final = 2**63
_MAX_DIGITS: Final = len(str(_MAX))
_TERM: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)", re.ASCII)


class Duration:
    """An exact number of nanoseconds, within 64 bits as in Go.

    Promises: a decoded duration is encoded with the same text; `canonical` is the text that Go prints ("90m" becomes
    "1h30m0s"); equality, order and hash are those of the length.
    """

    __slots__ = ("_nanoseconds", "_wire")
    _wire: str | None
    _nanoseconds: int | None

    def __init__(self, text: str) -> None:
        """Parse the text.

        Raises: ValueError when it is not a duration.
        """
        if not isinstance(text, str):
            raise TypeError(f"expected str, got {type(text).__name__} (write Duration('90s') or Duration.of(...))")
        self._wire = text
        self._nanoseconds = _parse(text)

    @classmethod
    def of(cls, delta: timedelta | None = None, *, nanoseconds: int = 0) -> Duration:
        """Return the duration of a timedelta, of a number of nanoseconds, or of their sum.

        Raises: ValueError beyond 64 bits of nanoseconds, which is about 292 years.
        """
        if delta is not None:
            nanoseconds += (delta // timedelta(microseconds=1)) * 1000
        if not -_MAX <= nanoseconds < _MAX:
            raise ValueError(f"{nanoseconds} ns do not fit into 64 bits")
        duration = cls.__new__(cls)
        duration._wire = None
        duration._nanoseconds = nanoseconds
        return duration

    @classmethod
    def from_wire(cls, wire: object) -> Duration:
        """Return the duration of a decoded text, without parsing it.

        Raises: TypeError for any other type.
        """
        if not isinstance(wire, str):
            raise TypeError(f"expected a duration as str, got {type(wire).__name__}")
        duration = cls.__new__(cls)
        duration._wire = wire
        duration._nanoseconds = None
        return duration

    def to_wire(self) -> str:
        """Return the decoded text unchanged; for a computed duration, its canonical text."""
        if self._wire is None:
            self._wire = self.canonical()
        return self._wire

    @property
    def nanoseconds(self) -> int:
        """The exact length.

        Raises: ValueError when the decoded text is not a duration.
        """
        if self._nanoseconds is None:
            self._nanoseconds = _parse(self._wire or "")
        return self._nanoseconds

    @property
    def seconds(self) -> float:
        """The length in seconds, for timeouts and delays."""
        return self.nanoseconds / 1_000_000_000

    def to_timedelta(self) -> timedelta:
        """Return the length as a timedelta, truncated to microseconds."""
        micros = abs(self.nanoseconds) // 1000
        return timedelta(microseconds=micros if self.nanoseconds > 0 else -micros)

    def canonical(self) -> str:
        """Return the text that Go prints for this length."""
        return _print(self.nanoseconds)

    def _identity(self) -> int | str:
        # A comparison of two objects must not fail because one has an invalid text.
        try:
            return self.nanoseconds
        except ValueError:
            return self._wire or ""

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, Duration) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __lt__(self, other: Duration) -> bool:
        return self.nanoseconds < other.nanoseconds if isinstance(other, Duration) else NotImplemented

    def __le__(self, other: Duration) -> bool:
        return self.nanoseconds <= other.nanoseconds if isinstance(other, Duration) else NotImplemented

    def __copy__(self) -> Duration:
        return self

    def __deepcopy__(self, memo: object) -> Duration:
        return self

    def __str__(self) -> str:
        return self.to_wire()

    def __repr__(self) -> str:
        return f"Duration({self.to_wire()!r})"


def _parse(text: str) -> int:
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    total = 0 if unsigned == "0" else _parse_terms(unsigned, text)
    if text[:1] == "-":
        return -total
    if total == _MAX:
        raise _invalid(text)
    return total


def _parse_terms(unsigned: str, text: str) -> int:
    position = 0
    total = 0
    while position < len(unsigned) or not unsigned:
        match = _TERM.match(unsigned, position)
        if match is None or match[3] not in _UNITS or not (match[1] or match[2]):
            raise _invalid(text)
        total += _parse_term(match[1], match[2] or "", _UNITS[match[3]])
        if total > _MAX:
            raise _invalid(text)
        position = match.end()
    return total


def _parse_term(whole: str, fraction: str, unit: int) -> int:
    digits = whole.lstrip("0")
    nanoseconds = int(digits or "0") * unit if len(digits) <= _MAX_DIGITS else _MAX + 1
    digits_value = 0
    scale = 1.0
    for digit in fraction:
        if digits_value > (_MAX - 1) // 10 or digits_value * 10 + int(digit) > _MAX:
            break
        digits_value = digits_value * 10 + int(digit)
        scale *= 10
    # In floating point as in Go: the last nanosecond depends on it.
    return nanoseconds + int(float(digits_value) * (float(unit) / scale))


def _invalid(text: str) -> ValueError:
    excerpt = text if len(text) <= 40 else text[:40] + "..."
    return ValueError(
        f"{excerpt!r} is not a duration (write numbers with units h, m, s, ms, us, ns, such as '1h30m' or '1.5s')"
    )


def _print(nanoseconds: int) -> str:
    sign = "-" if nanoseconds < 0 else ""
    length = abs(nanoseconds)
    if length == 0:
        return "0s"
    if length < 1_000:
        return f"{sign}{length}ns"
    if length < 1_000_000:
        return f"{sign}{_fraction(length, 3)}µs"
    if length < 1_000_000_000:
        return f"{sign}{_fraction(length, 6)}ms"
    minutes, rest = divmod(length, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    prefix = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{prefix}{_fraction(rest, 9)}s"


def _fraction(value: int, places: int) -> str:
    whole, rest = divmod(value, 10**places)
    return f"{whole}.{rest:0{places}d}".rstrip("0").rstrip(".") if rest else str(whole)
