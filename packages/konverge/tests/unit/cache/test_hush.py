"""A stream that falls silent: noticed at the right moment, by a timer that is hardly ever set."""

from __future__ import annotations

import asyncio

import pytest

from konverge.cache.idle_timeout import IdleTimeout


def now() -> float:
    return asyncio.get_running_loop().time()


async def silent_after(*steps: float, limit: float) -> float:
    """Say something at these moments, then nothing; give the moment at which that was noticed."""
    try:
        async with asyncio.timeout(None) as deadline:
            with IdleTimeout(deadline) as hush:
                hush.allow(now() + limit)
                for step in steps:
                    await asyncio.sleep(step - now())
                    hush.pause()
                    hush.allow(now() + limit)
                await asyncio.sleep(1e6)
    except TimeoutError:
        assert deadline.expired()
    return now()


async def test_silence_from_the_start_is_noticed_when_its_time_is_up() -> None:
    assert await silent_after(limit=45) == 45


async def test_silence_is_counted_from_the_last_word() -> None:
    assert await silent_after(1, 44, 44.5, 80, limit=45) == 125


async def test_a_pause_is_no_silence_however_long_it_is() -> None:
    async with asyncio.timeout(None) as deadline:
        with IdleTimeout(deadline) as hush:
            hush.allow(now() + 45)
            hush.pause()
            await asyncio.sleep(500)
            hush.allow(now() + 45)
            await asyncio.sleep(44)
    assert not deadline.expired()


async def test_after_a_pause_silence_is_noticed_again() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as deadline:
            with IdleTimeout(deadline) as hush:
                hush.allow(now() + 45)
                hush.pause()
                await asyncio.sleep(100)
                hush.allow(now() + 45)
                await asyncio.sleep(1e6)
    assert now() == 145


async def test_nothing_rings_any_more_when_it_is_over() -> None:
    async with asyncio.timeout(None) as deadline:
        with IdleTimeout(deadline) as hush:
            hush.allow(now() + 45)
        await asyncio.sleep(100)
    assert not deadline.expired()


async def test_a_moment_that_is_earlier_than_the_last_one_counts() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as deadline:
            with IdleTimeout(deadline) as hush:
                hush.allow(now() + 90)
                hush.allow(now() + 30)
                await asyncio.sleep(1e6)
    assert now() == 30
