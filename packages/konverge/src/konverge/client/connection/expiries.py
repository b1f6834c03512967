"""Many deadlines with one timer: whatever waits on a connection is told when its time is up."""

from __future__ import annotations

import asyncio
from typing import Protocol

__all__ = ["Expiries", "Expiring"]


class Expiring(Protocol):
    """Something with a deadline."""

    def expire(self) -> None:
        """End it: the deadline is reached."""
        ...


class Expiries:
    """The deadlines of what waits on one event loop.

    The loop has one timer, for the earliest deadline: nearly every request ends long before its own, and a timer for
    each would cost more than parsing the response.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ends: dict[Expiring, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, waiting: Expiring, end: float) -> None:
        """Call `waiting.expire()` at that time of the loop's clock, unless it is removed before."""
        self._ends[waiting] = end
        if self._timer is None or end < self._timer.when():
            self._start(end)

    def remove(self, waiting: Expiring) -> None:
        """Remove its deadline, if it has one."""
        self._ends.pop(waiting, None)

    def close(self) -> None:
        """Remove all deadlines."""
        self._ends.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self, end: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(end, self._expire)

    def _expire(self) -> None:
        assert self._timer is not None
        now = max(self._timer.when(), self._loop.time())
        self._timer = None
        for waiting in [waiting for waiting, end in self._ends.items() if end <= now]:
            del self._ends[waiting]
            waiting.expire()
        if self._ends and self._timer is None:
            self._start(min(self._ends.values()))
