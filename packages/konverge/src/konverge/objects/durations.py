"""Spans of time as Go programs write them: "1h30m", "100ms", "1.5s".

As with quantities, a `Duration` from the wire keeps what came and reads it when asked. The units end at hours; there
are no days, since they differ in length.
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
_MOST: Final = 2**63
_MOST_DIGITS: Final = len(str(_MOST))
_TERM: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)", re.ASCII)


class Duration:
    """An exact number of nanoseconds, within 64 bits as in Go.

    Promises: what came from the wire goes back as it came; `canonical` gives what Go prints for it ("90m" becomes
    "1h30m0s"); equality, order and hash are those of the length.
    """

    __slots__ = ("_nanoseconds", "_wire")
    _wire: str | None
    _nanoseconds: int | None

    def __init__(self, text: str) -> None:
        """Read the text at once.

        Raises: ValueError when it is no duration.
        """
        if not isinstance(text, str):
            raise TypeError(f"expected str, got {type(text).__name__}: write Duration('90s') or Duration.of(...)")
        self._wire = text
        self._nanoseconds = _read(text)

    @classmethod
    def of(cls, span: timedelta | None = None, *, nanoseconds: int = 0) -> Duration:
        """Return the duration of a timedelta, of a count of nanoseconds, or of both together.

        Raises: ValueError beyond 64 bits of nanoseconds, which is about 292 years.
        """
        if span is not None:
            nanoseconds += (span // timedelta(microseconds=1)) * 1000
        if not -_MOST <= nanoseconds < _MOST:
            raise ValueError(f"{nanoseconds} ns do not fit into 64 bits")
        duration = cls.__new__(cls)
        duration._wire = None
        duration._nanoseconds = nanoseconds
        return duration

    @classmethod
    def from_wire(cls, wire: object) -> Duration:
        """Keep the text that came without reading it.

        Raises: TypeError for any other type.
        """
        if not isinstance(wire, str):
            raise TypeError(f"expected a duration as str, got {type(wire).__name__}")
        duration = cls.__new__(cls)
        duration._wire = wire
        duration._nanoseconds = None
        return duration

    def to_wire(self) -> str:
        """Return what came from the wire as it came; for a computed duration, its canonical text."""
        if self._wire is None:
            self._wire = self.canonical()
        return self._wire

    @property
    def nanoseconds(self) -> int:
        """The exact length.

        Raises: ValueError when what came from the wire is no duration.
        """
        if self._nanoseconds is None:
            self._nanoseconds = _read(self._wire or "")
        return self._nanoseconds

    @property
    def seconds(self) -> float:
        """The length in seconds, for timeouts and delays."""
        return self.nanoseconds / 1_000_000_000

    def to_timedelta(self) -> timedelta:
        """Return the length as a timedelta, cut to whole microseconds towards zero."""
        micros = abs(self.nanoseconds) // 1000
        return timedelta(microseconds=micros if self.nanoseconds > 0 else -micros)

    def canonical(self) -> str:
        """Return the text that Go prints for this length."""
        return _print(self.nanoseconds)

    def _identity(self) -> int | str:
        # Comparing two objects must not fail because one of them carries a text that nobody can read.
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


def _read(text: str) -> int:
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    total = 0 if unsigned == "0" else _read_terms(unsigned, text)
    if text[:1] == "-":
        return -total
    if total == _MOST:
        raise _unreadable(text)
    return total


def _read_terms(unsigned: str, text: str) -> int:
    position = 0
    total = 0
    while position < len(unsigned) or not unsigned:
        match = _TERM.match(unsigned, position)
        if match is None or match[3] not in _UNITS or not (match[1] or match[2]):
            raise _unreadable(text)
        total += _read_term(match[1], match[2] or "", _UNITS[match[3]])
        if total > _MOST:
            raise _unreadable(text)
        position = match.end()
    return total


def _read_term(whole: str, fraction: str, unit: int) -> int:
    digits = whole.lstrip("0")
    nanoseconds = int(digits or "0") * unit if len(digits) <= _MOST_DIGITS else _MOST + 1
    taken = 0
    scale = 1.0
    for digit in fraction:
        if taken > (_MOST - 1) // 10 or taken * 10 + int(digit) > _MOST:
            break
        taken = taken * 10 + int(digit)
        scale *= 10
    # In floating point, since Go does so and the last nanosecond depends on it.
    return nanoseconds + int(float(taken) * (float(unit) / scale))


def _unreadable(text: str) -> ValueError:
    shown = text if len(text) <= 40 else text[:40] + "..."
    return ValueError(
        f"{shown!r} is no duration: write numbers with units (h, m, s, ms, us, ns), such as '1h30m' or '1.5s'"
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
    shown = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{shown}{_fraction(rest, 9)}s"


def _fraction(value: int, places: int) -> str:
    whole, rest = divmod(value, 10**places)
    return f"{whole}.{rest:0{places}d}".rstrip("0").rstrip(".") if rest else str(whole)
