from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.client.retry import RetryMode, RetryPolicy
from konverge.errors import (
    Conflict,
    KonvergeError,
    NotFound,
    RedirectError,
    ServerError,
    TooManyRequests,
    TransportError,
)


def refused(cls: type[TooManyRequests | ServerError], status: int, retry_after: float | None = None) -> KonvergeError:
    error = cls("no", status=status)
    error.retry_after = retry_after
    return error


BUSY = refused(TooManyRequests, 429)
DOWN = refused(ServerError, 503)
CUT = TransportError("cut")
UNSENT = TransportError("refused", sent=False)


@pytest.mark.parametrize(
    ("error", "repeat", "again"),
    [
        (BUSY, RetryMode.UNPROCESSED, True),
        (BUSY, RetryMode.NEVER, False),
        (UNSENT, RetryMode.UNPROCESSED, True),
        (CUT, RetryMode.UNPROCESSED, False),
        (CUT, RetryMode.IDEMPOTENT, True),
        (RedirectError("moved"), RetryMode.IDEMPOTENT, False),
        (DOWN, RetryMode.UNPROCESSED, False),
        (DOWN, RetryMode.IDEMPOTENT, True),
        (refused(ServerError, 500), RetryMode.IDEMPOTENT, False),
        (refused(ServerError, 500, retry_after=1), RetryMode.IDEMPOTENT, True),
        (refused(ServerError, 501), RetryMode.IDEMPOTENT, False),
        (Conflict("no", status=409), RetryMode.IDEMPOTENT, False),
        (NotFound("no", status=404), RetryMode.IDEMPOTENT, False),
    ],
)
def test_only_safe_requests_are_retried(error: KonvergeError, repeat: RetryMode, again: bool) -> None:
    assert (RetryPolicy().delay(error, attempt=1, retry=repeat, random=Random(1)) is not None) == again


@given(st.integers(1, 7), st.integers(0, 2**32))
def test_delays_double_within_bounds(attempt: int, seed: int) -> None:
    policy = RetryPolicy(base_delay=0.5, max_delay=4)
    delay = policy.delay(DOWN, attempt=attempt, retry=RetryMode.IDEMPOTENT, random=Random(seed))
    step = min(4, 0.5 * 2 ** (attempt - 1))
    assert delay is not None
    assert step / 2 <= delay <= step


@given(st.floats(0, 60), st.integers(1, 7), st.integers(0, 2**32))
def test_retry_after_is_a_lower_bound(retry_after: float, attempt: int, seed: int) -> None:
    error = refused(TooManyRequests, 429, retry_after)
    delay = RetryPolicy().delay(error, attempt=attempt, retry=RetryMode.UNPROCESSED, random=Random(seed))
    assert delay is not None
    assert delay >= retry_after


def test_there_is_a_last_attempt() -> None:
    policy = RetryPolicy(attempts=3, max_retry_after=30)
    assert policy.delay(BUSY, attempt=3, retry=RetryMode.IDEMPOTENT, random=Random(1)) is None
    assert (
        policy.delay(refused(TooManyRequests, 429, 31), attempt=1, retry=RetryMode.IDEMPOTENT, random=Random(1)) is None
    )
