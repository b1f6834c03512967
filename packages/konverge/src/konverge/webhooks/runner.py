"""How the functions of authors are run: coroutines on the loop, plain functions in threads."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from konverge.reconcile.threads import start_in_thread

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
        try:
            running = start_in_thread(_listed, function, args)
        except BaseException:
            self._free.release()
            raise
        # Its place is taken until it has ended, also when nobody waits for it any more.
        running.add_done_callback(lambda _: self._free.release())
        error, result = await asyncio.shield(running)
        if error is not None:
            raise error
        return result


def is_async(function: Callable[..., Any]) -> bool:
    """Tell whether calling it gives a coroutine; an object with an async `__call__` does too."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _listed(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call a function, and run a generator to its end while still in its thread."""
    result = function(*args)
    return list(result) if isinstance(result, Iterator) else result
