from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.queue import Backoff, RateLimit
from konverge.queue.rates import TokenBucket

backoffs = st.builds(
    lambda first, factor, more, jitter: Backoff(base_delay=first, factor=factor, max_delay=first * more, jitter=jitter),
    st.floats(0.001, 1000),
    st.floats(1, 10),
    st.floats(1, 1000),
    st.floats(0, 0.99),
)


@given(backoffs, st.integers(1, 5000), st.integers())
def test_a_delay_is_never_longer_than_exponential_growth_and_shorter_only_by_jitter(
    backoff: Backoff, failures: int, seed: int
) -> None:
    steady = backoff.base_delay
    for _ in range(failures - 1):
        if steady >= backoff.max_delay:
            break
        steady *= backoff.factor
    steady = min(steady, backoff.max_delay)

    delay = backoff.delay(failures, Random(seed))

    assert steady * (1 - backoff.jitter) * 0.999999 <= delay <= min(steady * 1.000001, backoff.max_delay)


def test_one_second_doubles_up_to_five_minutes() -> None:
    steady = Backoff(jitter=0)
    assert [steady.delay(n, Random()) for n in (1, 2, 3, 9, 10, 100_000)] == [1, 2, 4, 256, 300, 300]


def test_keys_that_failed_together_are_not_retried_together() -> None:
    random = Random(1)
    assert len({Backoff().delay(5, random) for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base_delay": 0}, "base_delay"),
        ({"base_delay": float("nan")}, "base_delay"),
        ({"factor": 0.5}, "factor"),
        ({"base_delay": 10, "max_delay": 1}, "max_delay"),
        ({"jitter": 1}, "jitter"),
        ({"jitter": -0.1}, "jitter"),
    ],
)
def test_an_invalid_backoff_is_rejected(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Backoff(**options)


def test_failures_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="number 1"):
        Backoff().delay(0, Random())


@pytest.mark.parametrize("options", [{"per_second": 0}, {"per_second": -1}, {"per_second": 1, "burst": 0}])
def test_an_invalid_rate_is_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="write"):
        RateLimit(**options)


@given(st.floats(0.1, 100), st.integers(1, 20), st.lists(st.floats(0, 3), max_size=60))
def test_no_window_has_more_than_the_burst_and_the_rate(rate: float, burst: int, pauses: list[float]) -> None:
    bucket, now, taken = TokenBucket(RateLimit(rate, burst)), 0.0, []
    for pause in pauses:
        now = max(now + pause, bucket.next_time())
        bucket.acquire(now)
        taken.append(now)

    for first, start in enumerate(taken):
        for last, end in enumerate(taken[first:], first):
            assert last - first + 1 <= burst + (end - start) * rate + 1e-6
