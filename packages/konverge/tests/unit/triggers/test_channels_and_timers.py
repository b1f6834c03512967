from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import pytest

from konverge.objects import Key
from konverge.triggers import Channel, EnqueueReason, Timer

A, B = Key("shop", "a"), Key("shop", "b")


class RecordingHandler:
    """Records the keys that it receives, and when."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Key]] = []
        self.reasons: list[EnqueueReason] = []

    def __call__(self, key: Key, reason: EnqueueReason) -> None:
        self.calls.append((asyncio.get_running_loop().time(), key))
        self.reasons.append(reason)


async def stop(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_key_reaches_every_running_handler() -> None:
    channel, one, two = Channel("github"), RecordingHandler(), RecordingHandler()
    tasks = [asyncio.create_task(channel.run(handler)) for handler in (one, two)]
    await asyncio.sleep(1)
    channel.put(A)
    assert one.calls == two.calls == [(1, A)]  # at once
    assert one.reasons == [EnqueueReason("github", "", A, "", "channel")]
    await stop(*tasks)


async def test_a_key_without_a_handler_is_stored_once() -> None:
    channel, handler, later = Channel(), RecordingHandler(), RecordingHandler()
    for _ in range(3):
        channel.put(A)
        channel.put_threadsafe(B)
    task = asyncio.create_task(channel.run(handler))
    await asyncio.sleep(1)
    assert handler.calls == [(0, A), (0, B)]

    await stop(task)
    channel.put(B)
    task = asyncio.create_task(channel.run(later))
    await asyncio.sleep(1)
    assert later.calls == [(1, B)]
    await stop(task)


@pytest.mark.real_time(limit=60)
async def test_threads_may_put() -> None:
    channel, handler = Channel(), RecordingHandler()
    task = asyncio.create_task(channel.run(handler))
    await asyncio.sleep(0)

    def put_many(first: int) -> None:
        for number in range(50):
            channel.put_threadsafe(Key("", f"{first}-{number}"))

    await asyncio.gather(*(asyncio.to_thread(put_many, first) for first in range(4)))
    await asyncio.sleep(0)

    assert {key for _, key in handler.calls} == {
        Key("", f"{first}-{number}") for first in range(4) for number in range(50)
    }
    await stop(task)


async def ticks(timer: Timer, count: int, pause: float = 0.0) -> list[tuple[float, Key]]:
    found = []
    async for key, reason in timer.ticks():
        assert reason == EnqueueReason(repr(timer), "", key, "", "timer")
        found.append((asyncio.get_running_loop().time(), key))
        if len(found) == count:
            break
        await asyncio.sleep(pause)
    return found


async def test_a_timer_enqueues_its_keys_at_each_tick() -> None:
    found = await ticks(Timer(10, lambda: [A, B, A]), 5)
    assert found == [(10, A), (10, B), (20, A), (20, B), (30, A)]


async def test_a_late_tick_does_not_move_the_next_ones_and_missed_ticks_are_skipped() -> None:
    assert [at for at, _ in await ticks(Timer(10, lambda: [A]), 4, pause=4)] == [10, 20, 30, 40]
    start = asyncio.get_running_loop().time()
    assert [at - start for at, _ in await ticks(Timer(10, lambda: [A]), 3, pause=25)] == [10, 35, 60]


async def test_a_timer_function_that_fails_is_called_again(caplog: pytest.LogCaptureFixture) -> None:
    called: list[float] = []

    def keys() -> list[Key]:
        called.append(asyncio.get_running_loop().time())
        if len(called) == 1:
            raise RuntimeError("a mistake")
        return [A]

    with caplog.at_level(logging.ERROR):
        assert await ticks(Timer(10, keys), 1) == [(20, A)]
    assert [record.message for record in caplog.records] == ["timer failed"]


@pytest.mark.parametrize("every", [0, -1, float("nan")])
def test_a_timer_needs_a_positive_interval(every: float) -> None:
    with pytest.raises(ValueError, match="every="):
        Timer(every, list)
