"""Stages: what a manager starts, in order, and stops in reverse, as one list.

A stage is opened when the one before it is ready. When one cannot be opened, those that are open are closed again.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["Stage", "opened"]

_log = logging.getLogger("konverge.manager")


@dataclass(frozen=True)
class Stage:
    """One step of a start: entering what `open` gives starts it and waits until it is ready, leaving stops it."""

    name: str
    open: Callable[[], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def opened(stages: Iterable[Stage], reached: Callable[[str], None]) -> AsyncGenerator[None]:
    """Open stages in order and close them in reverse; tell the name of each before it is opened."""
    async with AsyncExitStack() as open_ones:
        for stage in stages:
            reached(stage.name)
            await open_ones.enter_async_context(stage.open())
            _log.debug("Stage is open", extra={"stage": stage.name})
        reached("")
        yield
