"""Many time limits, one timer.

Nearly every request ends long before its deadline, so a timer of its own is started in vain, and `asyncio.timeout`
costs more than all else that a transport does for a request. Here the event loop holds one timer, for the earliest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

__all__ = ["DeadlineReached", "Deadlines"]

T = TypeVar("T")


class DeadlineReached(Exception):
    """What was awaited did not end in time; the cause is the CancelledError that ended it."""


class _Watched:
    """Something under way: the task that awaits it, and how often that was cancelled when it began."""

    __slots__ = ("cancelled_before", "end", "expired", "task")

    def __init__(self, task: asyncio.Task[Any], end: float) -> None:
        self.task = task
        self.end = end
        self.cancelled_before = task.cancelling()
        self.expired = False


class Deadlines:
    """The deadlines of what is under way on one event loop.

    Promises: `within` behaves as `asyncio.timeout_at` does, with an error of its own; a cancellation from elsewhere
    always comes through as one, also when the deadline is reached at the same time.
    """

    def __init__(self) -> None:
        self._watched: dict[_Watched, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def within(self, end: float, work: Awaitable[T]) -> T:
        """Await something until that time of the loop's clock.

        Raises: DeadlineReached when it had to be cancelled.
        """
        task = asyncio.current_task()
        assert task is not None
        watched = _Watched(task, end)
        self._watched[watched] = None
        if self._timer is None or end < self._timer.when():
            self._start(end)
        try:
            result = await work
        except BaseException as error:
            if self._leave(watched) and isinstance(error, asyncio.CancelledError):
                raise DeadlineReached from error
            raise
        self._leave(watched)
        return result

    def close(self) -> None:
        """Stop the timer; what is under way has no limit any more."""
        self._watched.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _leave(self, watched: _Watched) -> bool:
        """Stop watching; True when the deadline has cancelled the task, and nobody else has."""
        self._watched.pop(watched, None)
        return watched.expired and watched.task.uncancel() <= watched.cancelled_before

    def _start(self, end: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(end, self._ring)

    def _ring(self) -> None:
        assert self._timer is not None
        now = self._timer.when()
        self._timer = None
        for watched in [watched for watched in self._watched if watched.end <= now]:
            del self._watched[watched]
            watched.expired = True
            watched.task.cancel()
        if self._watched:
            self._start(min(watched.end for watched in self._watched))
