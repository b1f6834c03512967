"""Virtual time: an event loop on which an hour takes no time, so that tests never sleep.

When every task waits, the clock of the loop advances to the next timer instead of waiting for it. Times are exact:
after `await asyncio.sleep(60)` the loop's time is 60 seconds later, and everything that was due has run.

Assumes: the tested code gets the time from asyncio and waits with asyncio. Real sockets do not work: their data arrives
after the next timer. Threads (`asyncio.to_thread`) take no virtual time: the clock stops until they end.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

__all__ = ["VirtualTimeLoop", "run_in_virtual_time", "settle"]

T = TypeVar("T")

START: Final = 1_800_000_000.0
"""When virtual time begins, in seconds since 1970."""


class _VirtualTimeSelector(selectors.DefaultSelector):
    """A selector that advances the clock to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.threads = 0
        self.waiters: list[asyncio.Future[None]] = []

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.waiters and not self.threads and (timeout is None or timeout > 0):
            events = super().select(0)
            if not events:
                self._notify_waiters()
            return events
        if timeout is None or (timeout > 0 and self.threads):
            # Only a thread, a socket or a signal can continue the loop: these are waited for in real time.
            if not self.threads and len(self.get_map()) <= 1:
                raise RuntimeError(
                    "deadlock: every task waits, and there is no timer, thread or socket to continue one"
                )
            return super().select(None)
        events = super().select(0)
        if not events and timeout > 0:
            self.now += timeout
        return events

    def _notify_waiters(self) -> None:
        waiters, self.waiters = self.waiters, []
        for future in waiters:
            if not future.done():
                future.set_result(None)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time starts at 0 and advances from timer to timer.

    The wall clock advances with it: `konverge.objects.wall_clock` returns the date of the loop.
    """

    def __init__(self) -> None:
        self._virtual_time = _VirtualTimeSelector()
        super().__init__(self._virtual_time)

    @property
    def _clock_resolution(self) -> float:
        """The distance to the next float: the loop runs the timers that are due before the time plus this.

        With a larger one timers would run early. A task that waits again until its time would be run again at once, and
        two of them in turns would keep the loop busy, so that the clock would never advance.
        """
        return math.ulp(self._virtual_time.now)

    @_clock_resolution.setter
    def _clock_resolution(self, resolution: float) -> None:
        """Ignore the resolution of the real clock, which the base class sets."""

    def time(self) -> float:
        return self._virtual_time.now

    def wall_time(self) -> float:
        """Return the seconds since 1970 by the clock of this loop."""
        return START + self._virtual_time.now

    async def settle(self) -> None:
        """Wait until every other task waits for a timer: nothing more can happen at the current time."""
        future = self.create_future()
        self._virtual_time.waiters.append(future)
        await future

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run a function in a thread; the clock stops until it has returned."""
        future = super().run_in_executor(executor, func, *args)
        self._virtual_time.threads += 1
        future.add_done_callback(self._thread_is_done)
        return future

    async def shutdown_default_executor(self, *args: Any) -> None:
        """Wait for the threads to end; the loop uses one more thread for that."""
        self._virtual_time.threads += 1
        try:
            await super().shutdown_default_executor(*args)
        finally:
            self._virtual_time.threads -= 1

    def _thread_is_done(self, _: asyncio.Future[Any]) -> None:
        self._virtual_time.threads -= 1


async def settle() -> None:
    """Wait until nothing more can happen at the current time; for tests in virtual time.

    Raises: TypeError on an ordinary loop, where this cannot be determined.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualTimeLoop):
        raise TypeError("settle is exact, so it needs virtual time: remove the marker real_time from this test")
    await loop.settle()


def run_in_virtual_time(main: Coroutine[Any, Any, T], *, debug: bool = True) -> T:
    """Run a coroutine in virtual time and return its result.

    Where a loop already runs, as in a notebook, the virtual loop runs in a thread of its own, and that loop waits.
    """
    if asyncio._get_running_loop() is None:
        return _run(main, debug)
    with ThreadPoolExecutor(1, "virtual-time") as thread:
        return thread.submit(_run, main, debug).result()


def _run(main: Coroutine[Any, Any, T], debug: bool) -> T:
    with asyncio.Runner(debug=debug, loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
