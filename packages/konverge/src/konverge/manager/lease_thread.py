"""A thread with an event loop of its own, for what must go on while the main loop is busy: the lease, the probes.

    async with LeaseThread() as side:
        await side.call(probes.start)
        ...

Rules:

1. Whoever calls owns what runs: a call waits for its outcome, gets its error, and cancels it by being cancelled.
2. What is made on one loop stays there: connections and tasks of the side thread are made by what it is called for.
3. When the block ends nothing is left: calls that still run are cancelled, the thread has ended.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

__all__ = ["LeaseThread"]

T = TypeVar("T")


class LeaseThread:
    """Runs coroutines on a loop in a thread of their own.

    Promises: `call` gives the result or raises the error of what it runs, also when the thread comes to its end before.
    A call that is cancelled has ended when the cancellation is through.
    """

    def __init__(self, name: str = "konverge-side") -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: set[_Call[Any]] = set()

    async def __aenter__(self) -> Self:
        if self._thread is not None:
            raise RuntimeError("the side thread runs already: make another LeaseThread for a second one")
        ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        # A daemon, so that a process whose main thread is gone does not go on renewing a lease.
        self._thread = threading.Thread(target=self._run, args=(ready,), name=self._name, daemon=True)
        self._thread.start()
        await asyncio.wrap_future(ready)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        thread, self._thread = self._thread, None
        self.call_soon(self._stop)
        if thread is not None:
            await asyncio.to_thread(thread.join)

    async def call(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function in the side thread and wait for what comes of it.

        Raises: what it raises; RuntimeError when the thread is not running.
        """
        call = _Call(function)
        if not self.call_soon(self._begin, call):
            raise RuntimeError("the side thread is not running: write `async with LeaseThread() as side:`")
        waiting = asyncio.wrap_future(call.outcome)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            self.call_soon(call.cancel)
            await asyncio.wait([waiting])
            with suppress(asyncio.CancelledError, Exception):
                waiting.result()
            raise

    def call_soon(self, function: Callable[..., object], *args: object) -> bool:
        """Run a plain function in the side thread, some time soon; False when the thread is not running."""
        loop = self._loop
        if loop is None:
            return False
        try:
            loop.call_soon_threadsafe(function, *args)
        except RuntimeError:  # the loop was closed just now
            return False
        return True

    def _run(self, ready: concurrent.futures.Future[None]) -> None:
        try:
            asyncio.run(self._serve(ready))
        finally:
            self._loop = None
            for call in tuple(self._calls):
                call.abandon()
            if not ready.done():
                ready.set_exception(RuntimeError("the side thread could not start"))

    async def _serve(self, ready: concurrent.futures.Future[None]) -> None:
        self._stopping = asyncio.Event()
        async with asyncio.TaskGroup() as self._group:
            self._loop = asyncio.get_running_loop()
            ready.set_result(None)
            await self._stopping.wait()
            # From here on nothing can be called any more; what was called before is cancelled.
            self._loop = None
            for call in tuple(self._calls):
                call.cancel()

    def _stop(self) -> None:
        self._stopping.set()

    def _begin(self, call: _Call[Any]) -> None:
        if self._stopping.is_set():
            call.abandon()
            return
        self._calls.add(call)
        call.task = self._group.create_task(call.run())
        call.task.add_done_callback(lambda _: self._end(call))

    def _end(self, call: _Call[Any]) -> None:
        self._calls.discard(call)
        call.abandon()


class _Call(Generic[T]):
    """One call on its way: what to run, and where its outcome goes."""

    def __init__(self, function: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._function = function
        self.outcome: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        try:
            result = await self._function()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(result)

    def cancel(self) -> None:
        if self.task is None:
            self.abandon()
        else:
            self.task.cancel()

    def abandon(self) -> None:
        """Say that nothing will come any more, if nothing came."""
        if not self.outcome.done():
            self.outcome.set_exception(_Ended("the side thread ended before this call did"))


class _Ended(RuntimeError):
    """The outcome of a call that was cancelled by its thread."""
