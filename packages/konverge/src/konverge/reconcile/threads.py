"""Plain functions in threads: one daemon thread for each call, so that a call that hangs blocks no other."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor, Future
from threading import Thread
from typing import Any, TypeAlias

__all__ = ["start_in_thread"]


Outcome: TypeAlias = tuple[BaseException | None, Any]
"""What a function raised or returned, as a value: futures and tasks do not accept every exception."""


def start_in_thread(function: Callable[..., Any], *args: Any) -> asyncio.Future[Outcome]:
    """Call a function in its own thread; the result of the future is what it raised or returned.

    Promises: the future never fails; `StopIteration` becomes a RuntimeError, since no coroutine can raise it. The
    thread blocks neither other calls nor the end of the process.
    """
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return loop.run_in_executor(_ThreadPerCall(), lambda: context.run(_outcome, function, args))


class _ThreadPerCall(Executor):
    """A daemon thread for one call; the threads of a pool are not daemons."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                future.set_result(fn(*args, **kwargs))

        Thread(target=work, name="konverge-function", daemon=True).start()
        return future


def _outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> Outcome:
    try:
        return None, function(*args)
    except StopIteration:
        return RuntimeError("the function raised StopIteration"), None
    except BaseException as error:
        return error, None
