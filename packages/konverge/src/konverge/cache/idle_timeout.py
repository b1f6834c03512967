"""A timeout for idle streams that costs one timer for thousands of events.

Setting a timer again with each event costs as much as decoding the event. This timer is left to fire instead. If data
arrived meanwhile, it is set to the deadline that is valid by then.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

__all__ = ["IdleTimeout"]


class IdleTimeout:
    """Expires a timeout when a stream is idle for too long: `with IdleTimeout(timeout) as idle`.

    Promises: it expires at the deadline set last, neither earlier nor later; while paused it does not expire.
    """

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def reset(self, deadline: float) -> None:
        """Let the stream be idle until this time of the loop's clock."""
        self._deadline = deadline
        if self._timer is not None and deadline < self._timer.when():
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(deadline, self._fire)

    def pause(self) -> None:
        """Let the stream be idle without limit, until `reset` is called."""
        self._deadline = None

    def _fire(self) -> None:
        self._timer = None
        deadline, now = self._deadline, self._loop.time()
        if deadline is not None and deadline <= now:
            self._timeout.reschedule(now)
        elif deadline is not None:
            self._timer = self._loop.call_at(deadline, self._fire)
