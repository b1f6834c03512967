from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import Key
from konverge.queue import (
    Backoff,
    BucketRateLimiter,
    ItemExponentialRateLimiter,
    MaxOfRateLimiter,
    NamespaceRateLimiter,
    RateLimit,
    RateLimiter,
    WorkQueue,
)

STEADY = Backoff(base_delay=1, factor=2, max_delay=60, jitter=0)

rates = st.builds(RateLimit, st.floats(0.1, 100), st.integers(1, 10))
keys = st.builds(Key, st.sampled_from(["a", "b", "c", ""]), st.sampled_from(["x", "y"]))
failures = st.lists(st.tuples(st.floats(0, 3), keys, st.integers(1, 20)), max_size=60)


def retry_times(limiter: RateLimiter[Key], failed: list[tuple[float, Key, int]]) -> list[tuple[Key, float]]:
    """Return when each failed key may run again; the failures are seconds after the one before."""
    now, times = 1000.0, []
    for pause, key, count in failed:
        now += pause
        delay = limiter.delay(key, count, now)
        assert 0 <= delay < math.inf
        times.append((key, now + delay))
    return times


def assert_within(rate: RateLimit, times: list[float]) -> None:
    """Assert that no window of time has more than the burst and what the rate allows."""
    ordered = sorted(times)
    for first, start in enumerate(ordered):
        for last, end in enumerate(ordered[first:], first):
            assert last - first + 1 <= rate.burst + (end - start) * rate.per_second + 1e-6


@given(failures, st.integers())
def test_each_key_waits_for_its_own_backoff(failed: list[tuple[float, Key, int]], seed: int) -> None:
    limiter, random = ItemExponentialRateLimiter(Backoff(), random=Random(seed)), Random(seed)

    for _, key, count in failed:
        assert limiter.delay(key, count, 0.0) == Backoff().delay(count, random)


@given(rates, failures)
def test_a_bucket_allows_its_burst_and_its_rate_over_all_keys(
    rate: RateLimit, failed: list[tuple[float, Key, int]]
) -> None:
    assert_within(rate, [time for _, time in retry_times(BucketRateLimiter(rate), failed)])


@given(rates)
def test_a_bucket_delays_nothing_within_its_burst(rate: RateLimit) -> None:
    limiter = BucketRateLimiter(rate)
    delays = [limiter.delay("a", 1, 5.0) for _ in range(rate.burst + 1)]
    assert delays[:-1] == pytest.approx([0.0] * rate.burst)
    assert delays[-1] == pytest.approx(1 / rate.per_second)


@given(rates, failures)
def test_each_namespace_is_limited_as_if_it_were_alone(rate: RateLimit, failed: list[tuple[float, Key, int]]) -> None:
    alone: dict[str, BucketRateLimiter] = defaultdict(lambda: BucketRateLimiter(rate))
    limiter, now = NamespaceRateLimiter(rate), 1000.0

    for pause, key, count in failed:
        now += pause
        assert limiter.delay(key, count, now) == alone[key.namespace].delay(key, count, now)


@given(st.lists(rates, min_size=1, max_size=3), failures)
def test_max_of_returns_the_longest_delay_and_calls_every_limiter(
    limits: list[RateLimit], failed: list[tuple[float, Key, int]]
) -> None:
    alone = [BucketRateLimiter(rate) for rate in limits]
    limiter: MaxOfRateLimiter[Key] = MaxOfRateLimiter(*(BucketRateLimiter(rate) for rate in limits))
    now = 1000.0

    for pause, key, count in failed:
        now += pause
        assert limiter.delay(key, count, now) == max([one.delay(key, count, now) for one in alone])


def test_max_of_nothing_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least one"):
        MaxOfRateLimiter()


def test_namespaces_without_recent_failures_are_dropped_and_others_keep_their_tokens() -> None:
    limiter = NamespaceRateLimiter(RateLimit(per_second=1))
    for number in range(10_000):
        limiter.delay(Key(f"preview-{number}", "web"), 1, now=float(number))
        assert len(limiter) <= 65

    limiter = NamespaceRateLimiter(RateLimit(per_second=0.001))
    for number in range(200):
        limiter.delay(Key(f"team-{number}", "web"), 1, now=0.0)

    assert len(limiter) == 200
    assert limiter.delay(Key("team-0", "web"), 2, now=0.0) == 1000


async def test_a_failing_namespace_does_not_slow_down_another_one() -> None:
    limiter: RateLimiter[Key] = MaxOfRateLimiter(
        ItemExponentialRateLimiter(STEADY), NamespaceRateLimiter(RateLimit(per_second=0.1))
    )
    queue: WorkQueue[Key] = WorkQueue(rate_limiter=limiter)

    async def fail(key: Key) -> float:
        queue.add(key)
        await queue.get()
        delay = queue.retry(key)
        queue.done(key)
        return delay

    assert [await fail(Key("loud", f"web-{number}")) for number in range(4)] == [1, 10, 20, 30]
    assert await fail(Key("quiet", "web")) == 1


async def test_the_queue_runs_a_key_when_its_limiter_allows_it() -> None:
    queue: WorkQueue[str] = WorkQueue(rate_limiter=BucketRateLimiter(RateLimit(per_second=0.1, burst=1)))
    clock = asyncio.get_running_loop().time
    for key in ("a", "b", "c"):
        queue.add(key)
        await queue.get()
    for key in ("a", "b", "c"):
        queue.retry(key)
        queue.done(key)

    times = []
    for _ in range(3):
        key = await queue.get()
        times.append((key, clock()))
        queue.forget(key)
        queue.done(key)

    assert times == [("a", 0), ("b", 10), ("c", 20)]


class Broken:
    """A limiter that returns what it is told, or raises it."""

    def __init__(self, answer: float | Exception) -> None:
        self.answer = answer

    def delay(self, key: str, failures: int, now: float) -> float:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [-1.0, math.nan, math.inf, RuntimeError("no table")])
async def test_a_broken_limiter_is_logged_and_the_key_waits_for_the_default_backoff(
    answer: float | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    queue: WorkQueue[str] = WorkQueue(rate_limiter=Broken(answer))
    queue.add("a")
    await queue.get()

    with caplog.at_level(logging.ERROR, "konverge.queue"):
        delay = queue.retry("a")
    queue.done("a")

    assert 0.9 <= delay <= 1.0
    assert caplog.messages[0].startswith("rate limiter")
    assert caplog.records[0].__dict__["key"] == "a"
    assert await queue.get() == "a"


def test_a_queue_has_a_backoff_or_a_limiter() -> None:
    with pytest.raises(ValueError, match="one of them"):
        WorkQueue(backoff=STEADY, rate_limiter=ItemExponentialRateLimiter())
