"""Delayed keys of low priority that are due at nearly the same time become ready together."""

from __future__ import annotations

import asyncio

import pytest

from konverge.queue import Priority, WorkQueue


async def times(queue: WorkQueue[str], number: int) -> dict[str, float]:
    """Get some keys; return the time of each in milliseconds."""
    found = {}
    for _ in range(number):
        key = await queue.get()
        found[key] = round(asyncio.get_running_loop().time() * 1000, 6)
    return found


def delayed(priority: Priority = Priority.LOW, **milliseconds: float) -> WorkQueue[str]:
    queue: WorkQueue[str] = WorkQueue()
    for key, delay in milliseconds.items():
        queue.add(key, after=delay / 1000, priority=priority)
    return queue


async def test_keys_that_are_due_within_20_ms_are_ready_together_after_these() -> None:
    queue = delayed(a=1000, b=1005, c=1020, d=1021, e=3000)
    assert await times(queue, 5) == {"a": 1020, "b": 1020, "c": 1020, "d": 1021, "e": 3000}


async def test_keys_that_are_due_at_the_same_time_are_not_late() -> None:
    assert await times(delayed(a=1000, b=1000), 2) == {"a": 1000, "b": 1000}


@pytest.mark.parametrize("priority", [Priority.NORMAL, Priority.HIGH])
async def test_keys_of_another_priority_are_not_late(priority: Priority) -> None:
    assert await times(delayed(priority, a=1000, b=1001), 2) == {"a": 1000, "b": 1001}


async def test_a_key_that_was_removed_from_the_delayed_ones_delays_no_other() -> None:
    queue = delayed(a=1000, b=1001)
    queue.add("b")
    assert await times(queue, 2) == {"b": 0, "a": 1000}


async def test_a_key_that_is_due_now_does_not_wait_for_the_others() -> None:
    queue = delayed(a=1000, b=1001)
    getting = asyncio.create_task(times(queue, 3))
    await asyncio.sleep(1.01)
    queue.add("c")
    assert await getting == {"c": 1010, "a": 1010, "b": 1010}
