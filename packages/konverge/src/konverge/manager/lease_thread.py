"""A thread with its own event loop, for work that must go on while the main loop is blocked: leases and probes.

    async with LeaseThread() as thread:
        await thread.call(probes.start)
        ...

Rules:

1. The caller owns the call: it waits for the result, gets the error, and cancels the call by being cancelled.
2. Connections and tasks stay on the loop that created them: those of the lease thread are created by the functions that
   run on it.
3. Nothing is left when the block ends: running calls are cancelled and the thread has ended.
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
    """Runs coroutines on an event loop in a thread of its own.

    Promises: `call` returns the result or raises the error of the coroutine, also when the thread ends first. A
    cancelled call has ended when the cancellation is complete.
    """

    def __init__(self, name: str = "konverge-lease") -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: set[_Call[Any]] = set()

    async def __aenter__(self) -> Self:
        if self._thread is not None:
            raise RuntimeError("the lease thread is already running: create another LeaseThread for a second one")
        ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        # A daemon, so that a process whose main thread has ended does not go on renewing a lease.
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
        """Run a coroutine function in the lease thread and return its result.

        Raises: the error of the function; RuntimeError when the thread is not running.
        """
        call = _Call(function)
        if not self.call_soon(self._start_call, call):
            raise RuntimeError("the lease thread is not running: write `async with LeaseThread() as thread:`")
        waiting = asyncio.wrap_future(call.result)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            self.call_soon(call.cancel)
            await asyncio.wait([waiting])
            with suppress(asyncio.CancelledError, Exception):
                waiting.result()
            raise

    def call_soon(self, function: Callable[..., object], *args: object) -> bool:
        """Schedule a plain function in the lease thread; return False when the thread is not running."""
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
                call.fail_unfinished()
            if not ready.done():
                ready.set_exception(RuntimeError("the lease thread could not start"))

    async def _serve(self, ready: concurrent.futures.Future[None]) -> None:
        self._stopping = asyncio.Event()
        async with asyncio.TaskGroup() as self._group:
            self._loop = asyncio.get_running_loop()
            ready.set_result(None)
            await self._stopping.wait()
            # From here on no call is accepted; running calls are cancelled.
            self._loop = None
            for call in tuple(self._calls):
                call.cancel()

    def _stop(self) -> None:
        self._stopping.set()

    def _start_call(self, call: _Call[Any]) -> None:
        if self._stopping.is_set():
            call.fail_unfinished()
            return
        self._calls.add(call)
        call.task = self._group.create_task(call.run())
        call.task.add_done_callback(lambda _: self._end_call(call))

    def _end_call(self, call: _Call[Any]) -> None:
        self._calls.discard(call)
        call.fail_unfinished()


class _Call(Generic[T]):
    """One call: the function to run, and the future that gets its result."""

    def __init__(self, function: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._function = function
        self.result: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        try:
            result = await self._function()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.result.set_exception(error)
        else:
            self.result.set_result(result)

    def cancel(self) -> None:
        if self.task is None:
            self.fail_unfinished()
        else:
            self.task.cancel()

    def fail_unfinished(self) -> None:
        """Set an error as the result, unless there is a result already."""
        if not self.result.done():
            self.result.set_exception(RuntimeError("the lease thread ended before this call did"))
