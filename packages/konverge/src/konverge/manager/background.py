"""Tasks that live as long as a block of code, and end with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

__all__ = ["background"]


@asynccontextmanager
async def background(*coroutines: Coroutine[Any, Any, None]) -> AsyncGenerator[tuple[asyncio.Task[None], ...]]:
    """Run coroutines while the block runs, and cancel them when it ends; a failure of one ends the block.

    An error of the block, or of one coroutine, comes out as itself, not in a group.
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
        if len(errors.exceptions) > 1:
            raise
        raise errors.exceptions[0] from errors.exceptions[0].__cause__
    if failure is not None:
        raise failure
