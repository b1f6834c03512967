"""Run the functions of authors: coroutines on the loop, plain functions in threads."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from konverge.reconcile.threads import start_in_thread

__all__ = ["FunctionFailed", "Runner"]


class FunctionFailed(Exception):
    """An author's function raised an error, which is the cause. Its text may contain secrets: it is for logs only."""


class Runner:
    """Runs functions, at most `threads` plain ones at a time.

    Promises:

    - an error of a function, including `SystemExit`, is raised as `FunctionFailed`; only cancellation is not wrapped;
    - a plain function never blocks the loop. One that exceeds the caller's deadline occupies its thread until it ends,
      but delays neither other functions, as long as there are threads left, nor the end of the process.
    """

    def __init__(self, *, threads: int) -> None:
        self._semaphore = asyncio.Semaphore(threads)

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function with these arguments and return its result; the values of a generator as a list."""
        try:
            if is_async(function):
                return await function(*args)
            result = await self._in_thread(function, args)
            return await result if inspect.isawaitable(result) else result
        except (Exception, SystemExit) as error:
            raise FunctionFailed(type(error).__name__) from error

    async def _in_thread(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        await self._semaphore.acquire()
        try:
            running = start_in_thread(_call, function, args)
        except BaseException:
            self._semaphore.release()
            raise
        # The thread is occupied until the function has ended, also when the caller has timed out.
        running.add_done_callback(lambda _: self._semaphore.release())
        error, result = await asyncio.shield(running)
        if error is not None:
            raise error
        return result


def is_async(function: Callable[..., Any]) -> bool:
    """Report whether a call returns a coroutine; an object with an async `__call__` counts too."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call a function, and exhaust a generator while still in its thread."""
    result = function(*args)
    return list(result) if isinstance(result, Iterator) else result
