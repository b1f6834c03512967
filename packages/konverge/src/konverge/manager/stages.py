"""Stages: what a manager starts in order and stops in reverse order, as one list.

A stage is opened when the one before it is ready. When a stage cannot be opened, the open ones are closed.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from msgspec import Struct

__all__ = ["Stage", "open_stages"]

_log = logging.getLogger("konverge.manager")


class Stage(Struct, frozen=True):
    """One stage of start-up: entering the context that `open` returns starts it and waits until it is ready."""

    name: str
    open: Callable[[], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def open_stages(stages: Iterable[Stage], on_stage: Callable[[str], None]) -> AsyncGenerator[None]:
    """Open stages in order and close them in reverse; call `on_stage` with the name of each before it is opened, and
    with "" when all are open."""
    async with AsyncExitStack() as stack:
        for stage in stages:
            on_stage(stage.name)
            await stack.enter_async_context(stage.open())
            _log.debug("stage started", extra={"stage": stage.name})
        on_stage("")
        yield
