"""Timers: keys that are woken each so often, whatever happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable

from konverge.objects import Key
from konverge.triggers.reasons import AUTHORS_ERRORS, EnqueueReason

__all__ = ["Timer"]

_log = logging.getLogger("konverge.triggers")


class Timer:
    """Wakes the keys that a function gives, each `every` seconds, the first time after so many.

    Promises: a tick that comes late does not move the next ones, and those missed meanwhile are left out; a function
    that fails says so in the log and is asked again at the next tick.
    """

    def __init__(self, every: float, keys: Callable[[], Iterable[Key]]) -> None:
        if not every > 0:
            raise ValueError(f"every={every}: write the seconds between two ticks")
        self.every = every
        self._keys = keys

    async def ticks(self) -> AsyncIterator[tuple[Key, EnqueueReason]]:
        """Give each key at each tick, without end."""
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
        except AUTHORS_ERRORS:
            _log.exception("The keys of a timer could not be listed", extra={"timer": repr(self)})
            return []

    def __repr__(self) -> str:
        return f"every {self.every:g} s"
