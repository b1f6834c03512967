"""Plain functions in threads: one daemon thread for each call, so that one that hangs holds up nobody else."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor, Future
from threading import Thread
from typing import Any, TypeAlias

__all__ = ["start_in_thread"]


Outcome: TypeAlias = tuple[BaseException | None, Any]
"""What a function raised or returned, as a value: neither a future nor a task can take all that may be raised."""


def start_in_thread(function: Callable[..., Any], *args: Any) -> asyncio.Future[Outcome]:
    """Call a function in a thread of its own; what comes of it is the result of the future.

    Promises: the future never fails; `StopIteration` becomes a RuntimeError, since no coroutine can raise it. The
    thread keeps neither other calls nor the end of the process waiting.
    """
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return loop.run_in_executor(_OneThread(), context.run, _outcome, function, args)


class _OneThread(Executor):
    """A thread for one call; a daemon, as the threads of a pool are not."""

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
