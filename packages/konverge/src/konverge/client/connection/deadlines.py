"""Many deadlines with one timer.

Nearly every request ends long before its deadline, so a timer for each is wasted, and `asyncio.timeout` costs more than
all other work of a transport for a request. Here the event loop has one timer, for the earliest deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

__all__ = ["DeadlineReached", "Deadlines"]

T = TypeVar("T")


class DeadlineReached(Exception):
    """The awaited work did not end in time; the cause is the CancelledError that ended it."""


class _Pending:
    """Work in progress: the task that awaits it, and how often that task had been cancelled at the start."""

    __slots__ = ("cancelled_before", "end", "expired", "task")

    def __init__(self, task: asyncio.Task[Any], end: float) -> None:
        self.task = task
        self.end = end
        self.cancelled_before = task.cancelling()
        self.expired = False


class Deadlines:
    """The deadlines of the work in progress on one event loop.

    Promises: `within` behaves as `asyncio.timeout_at` does, with an error of its own; a cancellation from elsewhere is
    always raised as one, even if the deadline is reached at the same time.
    """

    def __init__(self) -> None:
        self._pending: dict[_Pending, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def within(self, end: float, work: Awaitable[T]) -> T:
        """Await `work` until that time of the loop's clock.

        Raises: DeadlineReached when `work` was cancelled at the deadline.
        """
        task = asyncio.current_task()
        assert task is not None
        pending = _Pending(task, end)
        self._pending[pending] = None
        if self._timer is None or end < self._timer.when():
            self._start(end)
        try:
            result = await work
        except BaseException as error:
            if self._remove(pending) and isinstance(error, asyncio.CancelledError):
                raise DeadlineReached from error
            raise
        self._remove(pending)
        return result

    def close(self) -> None:
        """Stop the timer; work in progress no longer has a deadline."""
        self._pending.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _remove(self, pending: _Pending) -> bool:
        """Remove the deadline; return True if only the deadline has cancelled the task."""
        self._pending.pop(pending, None)
        return pending.expired and pending.task.uncancel() <= pending.cancelled_before

    def _start(self, end: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(end, self._expire)

    def _expire(self) -> None:
        assert self._timer is not None
        now = self._timer.when()
        self._timer = None
        for pending in [pending for pending in self._pending if pending.end <= now]:
            del self._pending[pending]
            pending.expired = True
            pending.task.cancel()
        if self._pending:
            self._start(min(pending.end for pending in self._pending))
