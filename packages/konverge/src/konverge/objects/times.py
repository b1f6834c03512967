"""Timestamps as the server encodes them.

There are two wire forms, and the server does not accept one in place of the other:

- `Time` has whole seconds: ``2026-01-01T00:00:00Z``. It is a plain `datetime` that must carry a timezone, so msgspec
  reads and writes it natively, with no call back into Python.
- `MicroTime` always has six decimals: ``2026-01-01T00:00:00.000000Z`` (leases, events). A plain datetime would drop
  the zeros and the server would respond with 400, so it is a type of its own; msgspec passes every subclass of datetime
  to the hooks, which call `from_wire` and `to_wire`.

The current time of conditions, events and leases comes from `wall_clock`, since virtual time has a date of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Annotated, TypeAlias

import msgspec

__all__ = ["MicroTime", "Time", "now", "wall_clock"]

Time: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


def wall_clock(loop: asyncio.AbstractEventLoop | None = None) -> float:
    """Return the Unix time in seconds by the clock of an event loop, by default the running one.

    A loop with a date of its own, as on virtual time, has a method `wall_time`. All other loops, and code without a
    loop, use the system clock.
    """
    if loop is None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return time.time()
    clock: Callable[[], float] = getattr(loop, "wall_time", time.time)
    return clock()


def now() -> datetime:
    """Return the current time in UTC, in whole seconds as the server stores it."""
    return datetime.fromtimestamp(int(wall_clock()), UTC)


class MicroTime(datetime):
    """A datetime that is encoded with exactly six decimals, in UTC.

    Promises: `from_wire(text).to_wire() == text` for every text that the server sends; arithmetic and `replace` return
    a MicroTime; equality, order and hash are those of datetime.
    """

    @classmethod
    def now(cls, tz: tzinfo | None = UTC) -> MicroTime:
        """Return the current time with microseconds, by default in UTC."""
        return cls.fromtimestamp(wall_clock(), tz or UTC)

    @classmethod
    def of(cls, value: datetime) -> MicroTime:
        """Return the same time, in UTC, as a MicroTime.

        Raises: ValueError for a datetime without a timezone.
        """
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no timezone (write datetime(..., tzinfo=UTC) or MicroTime.now())")
        utc = value if value.tzinfo is UTC else value.astimezone(UTC)
        return cls(utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond, UTC)

    @classmethod
    def from_wire(cls, wire: object) -> MicroTime:
        """Parse an RFC 3339 text; fewer than six decimals are accepted too, though the server never sends them.

        Raises: ValueError or TypeError for anything else.
        """
        if isinstance(wire, datetime):
            return cls.of(wire)
        if not isinstance(wire, str):
            raise TypeError(f"expected an RFC 3339 time as str, got {type(wire).__name__}")
        try:
            return cls.of(msgspec.convert(wire, Time))
        except msgspec.ValidationError as error:
            raise ValueError(f"{wire!r} is not an RFC 3339 time with a timezone") from error

    def to_wire(self) -> str:
        """Return the wire form, such as ``2026-01-01T00:00:00.000000Z``.

        Raises: ValueError when the timezone is missing.
        """
        utc = self if self.tzinfo is UTC else MicroTime.of(self)
        return utc.isoformat(timespec="microseconds")[:-6] + "Z"
