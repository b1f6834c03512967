"""Points in time as the server writes them.

Two wire forms exist, and the server does not take one for the other:

- `Time` has whole seconds: ``2026-01-01T00:00:00Z``. It is a plain `datetime` that must carry a timezone, so msgspec
  reads and writes it natively, with no call back into Python.
- `MicroTime` has six decimals, always: ``2026-01-01T00:00:00.000000Z`` (leases, events). A plain datetime would drop
  the zeros and the server would answer 400, so it is a type of its own; msgspec hands every subclass of datetime to
  the hooks, which call `from_wire` and `to_wire`.

What is stamped with the present (conditions, events, leases) asks `wall_clock`: a simulated day has a date of its own.
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
    """Give the seconds since 1970 by the clock of an event loop: the one that runs here, unless another is named.

    A loop that has a date of its own, as on virtual time, says it with a method `wall_time`. All others, and code
    without a loop, are on the clock of the system.
    """
    if loop is None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return time.time()
    own: Callable[[], float] = getattr(loop, "wall_time", time.time)
    return own()


def now() -> datetime:
    """Return the present in UTC, in whole seconds: what the server would keep of it."""
    return datetime.fromtimestamp(int(wall_clock()), UTC)


class MicroTime(datetime):
    """A datetime that is written with exactly six decimals, in UTC.

    Promises: `from_wire(text).to_wire() == text` for every text that the server sends; arithmetic and `replace` give a
    MicroTime again; it compares and hashes as the datetime that it is.
    """

    @classmethod
    def now(cls, tz: tzinfo | None = UTC) -> MicroTime:
        """Return the present, in UTC unless told otherwise, with microseconds."""
        return cls.fromtimestamp(wall_clock(), tz or UTC)

    @classmethod
    def of(cls, moment: datetime) -> MicroTime:
        """Return the same moment, in UTC, as a MicroTime.

        Raises: ValueError for a datetime without a timezone.
        """
        if moment.tzinfo is None:
            raise ValueError(f"{moment!r} has no timezone: write datetime(..., tzinfo=UTC) or MicroTime.now()")
        at = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
        return cls(at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond, UTC)

    @classmethod
    def from_wire(cls, wire: object) -> MicroTime:
        """Read an RFC 3339 text; fewer than six decimals are taken too, though the server never sends them.

        Raises: ValueError or TypeError for anything else.
        """
        if isinstance(wire, datetime):
            return cls.of(wire)
        if not isinstance(wire, str):
            raise TypeError(f"expected an RFC 3339 time as str, got {type(wire).__name__}")
        try:
            return cls.of(msgspec.convert(wire, Time))
        except msgspec.ValidationError as error:
            raise ValueError(f"{wire!r} is no RFC 3339 time with a timezone") from error

    def to_wire(self) -> str:
        """Return the text for the wire, such as ``2026-01-01T00:00:00.000000Z``.

        Raises: ValueError when the timezone is missing.
        """
        moment = self if self.tzinfo is UTC else MicroTime.of(self)
        return moment.isoformat(timespec="microseconds")[:-6] + "Z"
