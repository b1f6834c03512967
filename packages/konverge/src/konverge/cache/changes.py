"""Changes of the state of informers, for tasks that wait for a condition on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Changes"]


class Changes:
    """Wakes the tasks that wait for a condition when something that it may depend on has changed.

    Promises: `wait_for` returns as soon as the condition holds after a `notify`, or at once if it holds already; no
    notification between its check and its wait is lost; nothing is stored for a task that no longer waits; tasks wake
    in the order in which they began to wait.
    """

    def __init__(self) -> None:
        # A dict, not a set: tasks wake in the order in which they began to wait, so that simulations replay.
        self._waiting: dict[asyncio.Future[None], None] = {}

    def notify(self) -> None:
        """Let all waiting tasks check their conditions again."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds. It is checked on the event loop, and must not block."""
        while not condition():
            waiter = asyncio.get_running_loop().create_future()
            self._waiting[waiter] = None
            try:
                await waiter
            finally:
                del self._waiting[waiter]
