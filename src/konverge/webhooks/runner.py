"""How the functions of authors are run: coroutines on the loop, plain functions in threads."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import suppress
from threading import Thread
from typing import Any

__all__ = ["FunctionFailed", "Runner"]


class FunctionFailed(Exception):
    """An author's function broke; the cause is what it raised. Its text may hold anything, so it is for logs only."""


class Runner:
    """Runs functions, at most `threads` plain ones at a time.

    Promises:

    - what a function raises, `SystemExit` included, comes out as `FunctionFailed`; only cancellation passes unchanged;
    - a plain function never blocks the loop. One that outlasts the caller's deadline keeps its thread until it ends,
      and keeps neither other functions nor the end of the process waiting, as long as there are threads left.
    """

    def __init__(self, *, threads: int) -> None:
        self._free = asyncio.Semaphore(threads)

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function with these arguments and give what it returns; a generator's values as a list."""
        try:
            if is_async(function):
                return await function(*args)
            result = await self._in_thread(function, args)
            return await result if inspect.isawaitable(result) else result
        except (Exception, SystemExit) as error:
            raise FunctionFailed(type(error).__name__) from error

    async def _in_thread(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        await self._free.acquire()
        loop = asyncio.get_running_loop()

        def ended() -> None:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits for the place
                loop.call_soon_threadsafe(self._free.release)

        context = contextvars.copy_context()
        error, result = await loop.run_in_executor(_OneThread(ended), context.run, _call, function, args)
        if error is not None:
            raise error
        return result


class _OneThread(Executor):
    """A thread for one call. It is a daemon: the process may end while it hangs, which the threads of a pool forbid."""

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                future.set_result(fn(*args, **kwargs))
            self._ended()

        try:
            Thread(target=work, name="webhook", daemon=True).start()
        except RuntimeError:
            self._ended()
            raise
        return future


def is_async(function: Callable[..., Any]) -> bool:
    """Tell whether calling it gives a coroutine; an object with an async `__call__` does too."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[BaseException | None, Any]:
    """Give what a function raised or returned as a value: a future takes neither StopIteration nor SystemExit."""
    try:
        result = function(*args)
        return None, list(result) if isinstance(result, Iterator) else result
    except StopIteration:
        return RuntimeError("the function raised StopIteration"), None
    except BaseException as error:
        return error, None
