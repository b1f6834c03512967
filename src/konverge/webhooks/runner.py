"""How the functions of authors are run: coroutines on the loop, plain functions in threads of their own."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["FunctionFailed", "Runner"]


class FunctionFailed(Exception):
    """An author's function broke; the cause is what it raised. Its text may hold anything, so it is for logs only."""


class Runner:
    """Runs functions, at most `threads` plain ones at a time.

    Promises:

    - what a function raises, `SystemExit` included, comes out as `FunctionFailed`; only cancellation passes unchanged;
    - a plain function never blocks the loop; one that outlasts the caller's deadline keeps its thread, and only that;
    - threads are started by the first plain function that is called.
    """

    def __init__(self, *, threads: int) -> None:
        self._most = threads
        self._threads: ThreadPoolExecutor | None = None

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function with these arguments and give what it returns; a generator's values as a list."""
        try:
            if is_async(function):
                return await function(*args)
            result = await self._in_thread(function, args)
            return await result if inspect.isawaitable(result) else result
        except (Exception, SystemExit) as error:
            raise FunctionFailed(type(error).__name__) from error

    def close(self) -> None:
        """Let the threads go; what runs in them runs on, what waits for one is dropped."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._most, thread_name_prefix="webhook")
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        error, result = await loop.run_in_executor(self._threads, context.run, _call, function, args)
        if error is not None:
            raise error
        return result


def is_async(function: Callable[..., Any]) -> bool:
    """Tell whether calling it gives a coroutine; an object with an async `__call__` does too."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[BaseException | None, Any]:
    # As a value: a future takes neither StopIteration nor, with good manners, SystemExit.
    try:
        result = function(*args)
        return None, list(result) if isinstance(result, Iterator) else result
    except (Exception, SystemExit) as error:
        return (RuntimeError("the function raised StopIteration") if isinstance(error, StopIteration) else error), None
