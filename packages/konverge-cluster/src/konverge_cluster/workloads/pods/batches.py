"""Slow start: many alike writes in batches that double, so that what fails for all is tried for few."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from konverge.errors import KonvergeError

__all__ = ["Outcome", "batch_sizes", "in_batches", "together"]

A = TypeVar("A")
R = TypeVar("R")


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """What came of a number of writes: the answers, and the refusals."""

    done: list[R] = field(default_factory=list)
    failed: list[KonvergeError] = field(default_factory=list)


def batch_sizes(count: int) -> Iterator[int]:
    """Give the sizes of the batches for so many writes: 1, 2, 4 and so on, the last with what is left."""
    size = 1
    while count > 0:
        size = min(size, count)
        yield size
        count -= size
        size *= 2


async def in_batches(items: Sequence[A], write: Callable[[A], Awaitable[R]]) -> Outcome[R]:
    """Write for each item, batch by batch; after a batch with a failure no other is begun."""
    outcome: Outcome[R] = Outcome()
    start = 0
    for size in batch_sizes(len(items)):
        batch = await together(items[start : start + size], write)
        outcome.done.extend(batch.done)
        outcome.failed.extend(batch.failed)
        if batch.failed:
            break
        start += size
    return outcome


async def together(items: Sequence[A], write: Callable[[A], Awaitable[R]]) -> Outcome[R]:
    """Write for all items at the same time; a refusal of one stops no other."""
    outcome: Outcome[R] = Outcome()

    async def attempt(item: A) -> None:
        try:
            outcome.done.append(await write(item))
        except KonvergeError as error:
            outcome.failed.append(error)

    if len(items) == 1:
        await attempt(items[0])
        return outcome
    async with asyncio.TaskGroup() as group:
        for item in items:
            group.create_task(attempt(item))
    return outcome
