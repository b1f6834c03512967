"""Timers: enqueue keys at a fixed interval."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable

from konverge.objects import Key
from konverge.triggers.reasons import USER_CODE_ERRORS, EnqueueReason

__all__ = ["Timer"]

_log = logging.getLogger("konverge.triggers")


class Timer:
    """Enqueues the keys that a function returns, every `every` seconds, first after one interval.

    Promises: a late tick does not move the next ones, and ticks missed meanwhile are skipped; a function that raises is
    logged and called again at the next tick.
    """

    def __init__(self, every: float, keys: Callable[[], Iterable[Key]]) -> None:
        if not every > 0:
            raise ValueError(f"every={every}: write the seconds between two ticks")
        self.every = every
        self._keys = keys

    async def ticks(self) -> AsyncIterator[tuple[Key, EnqueueReason]]:
        """Yield each key at each tick, without end."""
        loop = asyncio.get_running_loop()
        start, tick = loop.time(), 0
        while True:
            tick = max(tick + 1, int((loop.time() - start) / self.every))
            await asyncio.sleep(start + tick * self.every - loop.time())
            for key in self._now():
                yield key, EnqueueReason(repr(self), "", key, "", "timer")

    def _now(self) -> list[Key]:
        try:
            return list(dict.fromkeys(self._keys()))
        except USER_CODE_ERRORS:
            _log.exception("timer failed", extra={"timer": repr(self)})
            return []

    def __repr__(self) -> str:
        return f"every {self.every:g} s"
