"""The idle timeout expires at the right moment, with a timer that is rarely set."""

from __future__ import annotations

import asyncio

import pytest

from konverge.cache.idle_timeout import IdleTimeout


def now() -> float:
    return asyncio.get_running_loop().time()


async def expiry_after(*steps: float, limit: float) -> float:
    """Receive data at these times, then nothing; return the time at which the timeout expires."""
    try:
        async with asyncio.timeout(None) as timeout:
            with IdleTimeout(timeout) as idle:
                idle.reset(now() + limit)
                for step in steps:
                    await asyncio.sleep(step - now())
                    idle.pause()
                    idle.reset(now() + limit)
                await asyncio.sleep(1e6)
    except TimeoutError:
        assert timeout.expired()
    return now()


async def test_a_stream_without_data_expires_after_the_limit() -> None:
    assert await expiry_after(limit=45) == 45


async def test_the_limit_counts_from_the_last_data() -> None:
    assert await expiry_after(1, 44, 44.5, 80, limit=45) == 125


async def test_a_pause_is_not_idle_time() -> None:
    async with asyncio.timeout(None) as timeout:
        with IdleTimeout(timeout) as idle:
            idle.reset(now() + 45)
            idle.pause()
            await asyncio.sleep(500)
            idle.reset(now() + 45)
            await asyncio.sleep(44)
    assert not timeout.expired()


async def test_the_timeout_works_again_after_a_pause() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as timeout:
            with IdleTimeout(timeout) as idle:
                idle.reset(now() + 45)
                idle.pause()
                await asyncio.sleep(100)
                idle.reset(now() + 45)
                await asyncio.sleep(1e6)
    assert now() == 145


async def test_nothing_expires_after_the_block() -> None:
    async with asyncio.timeout(None) as timeout:
        with IdleTimeout(timeout) as idle:
            idle.reset(now() + 45)
        await asyncio.sleep(100)
    assert not timeout.expired()


async def test_an_earlier_deadline_replaces_the_last_one() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as timeout:
            with IdleTimeout(timeout) as idle:
                idle.reset(now() + 90)
                idle.reset(now() + 30)
                await asyncio.sleep(1e6)
    assert now() == 30


async def test_a_later_deadline_sets_no_other_timer_and_an_earlier_one_does() -> None:
    with IdleTimeout(asyncio.timeout(None)) as idle:
        idle.reset(now() + 45)
        first = idle._timer
        assert first is not None
        idle.reset(now() + 45)
        idle.reset(now() + 90)
        assert idle._timer is first
        idle.reset(now() + 30)
        second = idle._timer
        assert second is not None
        assert (first.cancelled(), second.cancelled(), second.when()) == (True, False, 30)
    assert second.cancelled()


def due(idle: IdleTimeout) -> float | None:
    return None if idle._timer is None else idle._timer.when()


async def test_a_timer_that_fires_too_early_is_set_to_the_deadline() -> None:
    async with asyncio.timeout(None) as timeout:
        with IdleTimeout(timeout) as idle:
            idle.reset(now() + 45)
            idle.reset(now() + 50)
            assert due(idle) == 45
            await asyncio.sleep(46)
            assert due(idle) == 50
            idle.pause()
            await asyncio.sleep(10)
            assert due(idle) is None
    assert not timeout.expired()
