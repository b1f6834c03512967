"""When each series of events is looked at next."""

from __future__ import annotations

import asyncio
import heapq
import math

from konverge.reconcile.event_series import Series

__all__ = ["Agenda"]


class Agenda:
    """Series by the time at which they are due, each at most once.

    Of two plans for a series the earlier one counts. A plan that was replaced stays in the heap until its time, and is
    known by a `due` that is no longer the series' own.
    """

    def __init__(self) -> None:
        self._plans: list[tuple[float, int, Series]] = []
        self._order = 0
        self._changed = asyncio.Event()

    def plan(self, series: Series, at: float) -> None:
        """Look at a series at that time, or earlier if that is planned already."""
        if at >= series.due:
            return
        series.due = at
        self._order += 1
        heapq.heappush(self._plans, (at, self._order, series))
        self._changed.set()

    def next(self, now: float) -> Series | None:
        """Take off a series that is due; None when there is none yet."""
        while self._plans:
            at, _, series = self._plans[0]
            if at == series.due and not series.forgotten and at > now:
                return None
            heapq.heappop(self._plans)
            if at == series.due and not series.forgotten:
                series.due = math.inf
                return series
        return None

    async def wait(self) -> None:
        """Wait until the next plan is due, or a plan is made, or `wake` is called."""
        try:
            async with asyncio.timeout_at(self._plans[0][0] if self._plans else None):
                await self._changed.wait()
        except TimeoutError:
            pass  # the time of the plan has come
        self._changed.clear()

    def wake(self) -> None:
        """End a `wait`, the next one if there is none now."""
        self._changed.set()

    def clear(self) -> None:
        """Drop all plans."""
        self._plans.clear()
