from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import pytest

from konverge.objects import Key
from konverge.triggers import Channel, EnqueueReason, Timer

A, B = Key("shop", "a"), Key("shop", "b")


class Ear:
    """Notes what it is told, and when."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, Key]] = []
        self.wakes: list[EnqueueReason] = []

    def __call__(self, key: Key, wake: EnqueueReason) -> None:
        self.heard.append((asyncio.get_running_loop().time(), key))
        self.wakes.append(wake)


async def stop(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_what_is_put_reaches_everybody_who_listens() -> None:
    channel, one, two = Channel("github"), Ear(), Ear()
    tasks = [asyncio.create_task(channel.run(ear)) for ear in (one, two)]
    await asyncio.sleep(1)
    channel.put(A)
    assert one.heard == two.heard == [(1, A)]  # at once
    assert one.wakes == [EnqueueReason("github", "", A, "", "channel")]
    await stop(*tasks)


async def test_what_is_put_while_nobody_listens_is_kept_once() -> None:
    channel, ear, later = Channel(), Ear(), Ear()
    for _ in range(3):
        channel.put(A)
        channel.put_threadsafe(B)
    task = asyncio.create_task(channel.run(ear))
    await asyncio.sleep(1)
    assert ear.heard == [(0, A), (0, B)]

    await stop(task)
    channel.put(B)
    task = asyncio.create_task(channel.run(later))
    await asyncio.sleep(1)
    assert later.heard == [(1, B)]
    await stop(task)


@pytest.mark.real_time(limit=60)
async def test_threads_may_put() -> None:
    channel, ear = Channel(), Ear()
    task = asyncio.create_task(channel.run(ear))
    await asyncio.sleep(0)

    def put_many(first: int) -> None:
        for number in range(50):
            channel.put_threadsafe(Key("", f"{first}-{number}"))

    await asyncio.gather(*(asyncio.to_thread(put_many, first) for first in range(4)))
    await asyncio.sleep(0)

    assert {key for _, key in ear.heard} == {Key("", f"{first}-{number}") for first in range(4) for number in range(50)}
    await stop(task)


async def ticks(timer: Timer, count: int, pause: float = 0.0) -> list[tuple[float, Key]]:
    found = []
    async for key, wake in timer.ticks():
        assert wake == EnqueueReason(repr(timer), "", key, "", "timer")
        found.append((asyncio.get_running_loop().time(), key))
        if len(found) == count:
            break
        await asyncio.sleep(pause)
    return found


async def test_a_timer_gives_its_keys_each_time() -> None:
    found = await ticks(Timer(10, lambda: [A, B, A]), 5)
    assert found == [(10, A), (10, B), (20, A), (20, B), (30, A)]


async def test_a_late_tick_does_not_move_the_next_ones_and_missed_ones_are_left_out() -> None:
    assert [at for at, _ in await ticks(Timer(10, lambda: [A]), 4, pause=4)] == [10, 20, 30, 40]
    start = asyncio.get_running_loop().time()
    assert [at - start for at, _ in await ticks(Timer(10, lambda: [A]), 3, pause=25)] == [10, 35, 60]


async def test_a_function_that_fails_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[float] = []

    def keys() -> list[Key]:
        asked.append(asyncio.get_running_loop().time())
        if len(asked) == 1:
            raise RuntimeError("a mistake")
        return [A]

    with caplog.at_level(logging.ERROR):
        assert await ticks(Timer(10, keys), 1) == [(20, A)]
    assert [record.message for record in caplog.records] == ["The keys of a timer could not be listed"]


@pytest.mark.parametrize("every", [0, -1, float("nan")])
def test_a_timer_needs_a_time(every: float) -> None:
    with pytest.raises(ValueError, match="every="):
        Timer(every, list)
