"""The schedule of the series of events: when each is processed next."""

from __future__ import annotations

import asyncio
import heapq
import math

from konverge.reconcile.event_series import Series

__all__ = ["SeriesSchedule"]


class SeriesSchedule:
    """Series by the time at which they are due, each at most once.

    Of two times for a series the earlier one counts. An entry that was replaced stays in the heap until its time, and
    is recognized by a time that differs from the `due` of its series.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Series]] = []
        self._order = 0
        self._changed = asyncio.Event()

    def add(self, series: Series, at: float) -> None:
        """Schedule a series at a time, unless it is already scheduled earlier."""
        if at >= series.due:
            return
        series.due = at
        self._order += 1
        heapq.heappush(self._entries, (at, self._order, series))
        self._changed.set()

    def pop(self, now: float) -> Series | None:
        """Remove and return a series that is due, or return None."""
        while self._entries:
            at, _, series = self._entries[0]
            if at == series.due and not series.dropped and at > now:
                return None
            heapq.heappop(self._entries)
            if at == series.due and not series.dropped:
                series.due = math.inf
                return series
        return None

    async def wait(self) -> None:
        """Wait until the next series is due, a series is added, or `notify` is called."""
        try:
            async with asyncio.timeout_at(self._entries[0][0] if self._entries else None):
                await self._changed.wait()
        except TimeoutError:
            pass  # the next series is due
        self._changed.clear()

    def notify(self) -> None:
        """End the current `wait`, or the next one."""
        self._changed.set()

    def clear(self) -> None:
        """Remove all series."""
        self._entries.clear()
