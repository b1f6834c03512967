"""Slow start: many similar writes in batches that double, so that an error that affects all is hit by few."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from konverge.errors import KonvergeError

__all__ = ["BatchResult", "batch_sizes", "run_all", "slow_start"]

A = TypeVar("A")
R = TypeVar("R")


@dataclass(frozen=True)
class BatchResult(Generic[R]):
    """The results of a number of writes, and the errors."""

    done: list[R] = field(default_factory=list)
    failed: list[KonvergeError] = field(default_factory=list)


def batch_sizes(count: int) -> Iterator[int]:
    """Return the batch sizes for `count` writes: 1, 2, 4 and so on, the last with the rest."""
    size = 1
    while count > 0:
        size = min(size, count)
        yield size
        count -= size
        size *= 2


async def slow_start(items: Sequence[A], write: Callable[[A], Awaitable[R]]) -> BatchResult[R]:
    """Write each item, batch by batch; a batch with an error is the last one."""
    result: BatchResult[R] = BatchResult()
    start = 0
    for size in batch_sizes(len(items)):
        batch = await run_all(items[start : start + size], write)
        result.done.extend(batch.done)
        result.failed.extend(batch.failed)
        if batch.failed:
            break
        start += size
    return result


async def run_all(items: Sequence[A], write: Callable[[A], Awaitable[R]]) -> BatchResult[R]:
    """Write all items concurrently; an error of one does not stop the others."""
    result: BatchResult[R] = BatchResult()

    async def attempt(item: A) -> None:
        try:
            result.done.append(await write(item))
        except KonvergeError as error:
            result.failed.append(error)

    if len(items) == 1:
        await attempt(items[0])
        return result
    async with asyncio.TaskGroup() as group:
        for item in items:
            group.create_task(attempt(item))
    return result
