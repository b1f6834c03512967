"""Virtual time: an event loop on which an hour passes in no time, and a test never sleeps.

When every task waits, the loop's clock jumps to the moment of the next timer instead of waiting for it. What a test
sees is exact: after `await asyncio.sleep(60)` the loop's time is 60 seconds later, and all that was due has happened.

Assumes: what is tested asks asyncio for the time and waits by asyncio. Real sockets have no place here: their answers
come later than the next timer. Threads (`asyncio.to_thread`) take no virtual time: the clock stands until they end.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

__all__ = ["VirtualTimeLoop", "run_virtually", "settle"]

T = TypeVar("T")

START: Final = 1_800_000_000.0
"""When virtual time begins, in seconds since 1970."""


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting for a timer, moves the clock to it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.threads = 0
        self.settling: list[asyncio.Future[None]] = []

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.settling and not self.threads and (timeout is None or timeout > 0):
            events = super().select(0)
            if not events:
                self._tell_settled()
            return events
        if timeout is None or (timeout > 0 and self.threads):
            # Only a thread, a socket or a signal can wake the loop: those are waited for in real time.
            if not self.threads and len(self.get_map()) <= 1:
                raise RuntimeError("deadlock: every task waits, and no timer, thread or socket is left to wake one")
            return super().select(None)
        events = super().select(0)
        if not events and timeout > 0:
            self.now += timeout
        return events

    def _tell_settled(self) -> None:
        settled, self.settling = self.settling, []
        for future in settled:
            if not future.done():
                future.set_result(None)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time starts at 0 and jumps from timer to timer.

    Its date goes with its time: whoever asks `konverge.objects.wall_clock` on it sees a day begin and end.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def wall_time(self) -> float:
        """Give the seconds since 1970, as this loop has them."""
        return START + self._jumping.now

    async def settle(self) -> None:
        """Wait until everything has happened that can happen now: every other task waits for time to pass."""
        future = self.create_future()
        self._jumping.settling.append(future)
        await future

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run a function in a thread; the clock stands until it is done."""
        future = super().run_in_executor(executor, func, *args)
        self._jumping.threads += 1
        future.add_done_callback(self._thread_is_done)
        return future

    async def shutdown_default_executor(self, *args: Any) -> None:
        """Wait for the threads to end; the loop does that in one more thread."""
        self._jumping.threads += 1
        try:
            await super().shutdown_default_executor(*args)
        finally:
            self._jumping.threads -= 1

    def _thread_is_done(self, _: asyncio.Future[Any]) -> None:
        self._jumping.threads -= 1


async def settle() -> None:
    """Wait until everything has happened that can happen without time passing; for tests on virtual time.

    Raises: TypeError on an ordinary loop, where nobody can know.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualTimeLoop):
        raise TypeError("settle is exact, so it needs virtual time: take the mark real_time from this test")
    await loop.settle()


def run_virtually(main: Coroutine[Any, Any, T], *, debug: bool = True) -> T:
    """Run a coroutine to its end on virtual time."""
    with asyncio.Runner(debug=debug, loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
