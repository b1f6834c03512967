"""How long a stream may say nothing, watched at the price of one timer for thousands of events.

A timer that is set anew with each event costs as much as taking the event in. This one is left to ring; when it does
too early, since something was heard meanwhile, it is set to the moment that counts by then.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

__all__ = ["IdleTimeout"]


class IdleTimeout:
    """Makes a timeout expire when a stream is silent for too long: `with IdleTimeout(deadline) as hush`.

    Promises: it expires at the moment last allowed, neither before nor later; while paused it does not.
    """

    def __init__(self, deadline: asyncio.Timeout) -> None:
        self._deadline = deadline
        self._loop = asyncio.get_running_loop()
        self._until: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def allow(self, until: float) -> None:
        """Let the stream say nothing until this moment of the loop's clock."""
        self._until = until
        if self._timer is not None and until < self._timer.when():
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(until, self._ring)

    def pause(self) -> None:
        """Let it say nothing for as long as it likes, until `allow` is called."""
        self._until = None

    def _ring(self) -> None:
        self._timer = None
        until, now = self._until, self._loop.time()
        if until is not None and until <= now:
            self._deadline.reschedule(now)
        elif until is not None:
            self._timer = self._loop.call_at(until, self._ring)
