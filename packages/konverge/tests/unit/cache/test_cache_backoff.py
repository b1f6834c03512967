"""When a reflector may send its next request, and how retries of many reflectors are spread."""

from __future__ import annotations

import asyncio
import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.cache.backoff import RequestBackoff, Stagger
from konverge.cache.options import ReflectorOptions
from konverge.testing import VirtualTimeLoop


def new_backoff(seed: int = 1) -> RequestBackoff:
    return RequestBackoff(ReflectorOptions(), Random(seed))


def test_without_failures_no_request_is_delayed() -> None:
    backoff = new_backoff()
    backoff.record_request(5.0)

    assert backoff.delay(5.0) == 0


def test_delays_double_and_have_jitter() -> None:
    backoff = new_backoff()
    now, waits = 0.0, []
    for _ in range(6):
        backoff.record_failure(now)
        waits.append(backoff.delay(now))
        now += 0.001

    for wait, step in zip(waits, [1, 2, 4, 8, 8, 8], strict=True):
        assert step <= wait <= step * 1.25
    assert len({wait % 1 for wait in waits}) == 6


def test_retry_after_is_a_lower_bound() -> None:
    backoff = new_backoff()

    backoff.record_failure(10.0, retry_after=17.0)

    assert backoff.delay(10.0) == 17.0


def test_an_excessive_retry_after_is_cut() -> None:
    backoff = new_backoff()

    backoff.record_failure(10.0, retry_after=1e9)

    assert backoff.delay(10.0) == 600.0


def test_after_a_minute_of_failures_delays_are_long_but_bounded() -> None:
    backoff = new_backoff()
    backoff.record_failure(0.0)
    backoff.record_failure(60.0)

    assert 24 <= backoff.delay(60.0) <= 30


def test_reset_ends_the_backoff() -> None:
    backoff = new_backoff()
    for now in range(100):
        backoff.record_failure(float(now))
    backoff.reset()

    assert backoff.delay(100.0) == 0
    backoff.record_failure(100.0)
    assert backoff.delay(100.0) < 1.3


@given(st.lists(st.sampled_from(["fail", "work"]), max_size=200), st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_failing_requests_start_a_second_apart_and_four_after_a_minute(outcomes: list[str], seed: int) -> None:
    backoff = new_backoff(seed)
    now, started = 0.0, []
    for outcome in ["fail", *outcomes]:
        now += backoff.delay(now)
        backoff.record_request(now)
        started.append(now)
        if outcome == "fail":
            backoff.record_failure(now)

    for one, other in itertools.pairwise(started):
        assert other - one >= (1 if one < 60 else 4) - 1e-9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"idle_timeout": 0}, "idle_timeout=0: write a number of seconds above 0"),
        ({"initial_backoff": -1.0}, "initial_backoff=-1.0: write a number of seconds above 0"),
        ({"min_watch_timeout": 700.0}, "min_watch_timeout is greater than max_watch_timeout"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        ReflectorOptions(**options)


def test_watches_may_be_of_one_length() -> None:
    options = ReflectorOptions(min_watch_timeout=300.0, max_watch_timeout=300.0)
    assert options.min_watch_timeout == options.max_watch_timeout


async def test_a_start_is_immediate_when_there_was_none_lately() -> None:
    await Stagger().wait()

    assert asyncio.get_running_loop().time() == 0


async def test_twenty_reflectors_start_one_after_the_other() -> None:
    assert await start_times(20) == pytest.approx([number * 0.25 for number in range(20)])


async def test_hundreds_of_reflectors_start_within_ten_seconds() -> None:
    assert max(await start_times(300)) < 10


async def test_the_starts_of_forty_and_more_collections_share_ten_seconds() -> None:
    """Those that are registered now: each counts as one, and one that ended does not count."""
    assert await start_times(41) == pytest.approx([number * 10 / 41 for number in range(41)])
    stagger = Stagger()
    for _ in range(100):
        stagger.register()
    for _ in range(20):
        stagger.unregister()
    for _ in range(3):
        await stagger.wait()
    assert asyncio.get_running_loop().time() == pytest.approx(40 * 10 / 41 + 2 * 10 / 80)


async def test_starts_that_became_due_while_the_loop_was_blocked_are_still_spread() -> None:
    stagger = Stagger()
    started: list[float] = []

    async def one() -> None:
        await stagger.wait()
        started.append(asyncio.get_running_loop().time())

    def block() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop._virtual_time.now += 2

    asyncio.get_running_loop().call_later(0.6, block)
    await asyncio.gather(*(one() for _ in range(8)))

    assert started[:3] == [0, 0.25, 0.5]
    assert all(later - earlier >= 0.25 for earlier, later in itertools.pairwise(started)), started


async def test_a_cancelled_wait_does_not_delay_the_others() -> None:
    stagger = Stagger()
    waiting = [asyncio.create_task(stagger.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.wait(waiting)

    assert asyncio.get_running_loop().time() == 0.25


async def start_times(count: int) -> list[float]:
    stagger = Stagger()

    async def one() -> float:
        stagger.register()
        await asyncio.sleep(0)  # all of them are registered before the first waits
        await stagger.wait()
        return asyncio.get_running_loop().time()

    return sorted(await asyncio.gather(*(one() for _ in range(count))))
