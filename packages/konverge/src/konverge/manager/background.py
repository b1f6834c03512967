"""Tasks that run for the duration of a block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

__all__ = ["background"]


@asynccontextmanager
async def background(*coroutines: Coroutine[Any, Any, None]) -> AsyncGenerator[tuple[asyncio.Task[None], ...]]:
    """Run coroutines while the block runs and cancel them when it ends; a failed coroutine cancels the block.

    An error of the block, or of a single coroutine, is raised as it is, not inside an exception group.
    """
    failure: Exception | None = None
    try:
        async with asyncio.TaskGroup() as group:
            tasks = tuple(group.create_task(coroutine) for coroutine in coroutines)
            try:
                yield tasks
            except Exception as error:
                failure = error
            finally:
                for task in tasks:
                    task.cancel()
    except BaseExceptionGroup as errors:
        single = _single(errors)
        if single is None:
            raise
        raise single from single.__cause__
    if failure is not None:
        raise failure


def _single(error: BaseException) -> BaseException | None:
    """Return the only error in nested groups; None when there are several."""
    while isinstance(error, BaseExceptionGroup):
        if len(error.exceptions) != 1:
            return None
        error = error.exceptions[0]
    return error
