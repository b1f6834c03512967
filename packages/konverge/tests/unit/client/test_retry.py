from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.client.retry import Repeat, RetryPolicy
from konverge.errors import Conflict, KonvergeError, NotFound, ServerError, TooManyRequests, TransportError


def refused(cls: type[TooManyRequests | ServerError], status: int, wish: float | None = None) -> KonvergeError:
    error = cls("no", status=status)
    error.retry_after = wish
    return error


BUSY = refused(TooManyRequests, 429)
DOWN = refused(ServerError, 503)
CUT = TransportError("cut")
UNSENT = TransportError("refused", sent=False)


@pytest.mark.parametrize(
    ("error", "repeat", "again"),
    [
        (BUSY, Repeat.UNREAD, True),
        (BUSY, Repeat.NEVER, False),
        (UNSENT, Repeat.UNREAD, True),
        (CUT, Repeat.UNREAD, False),
        (CUT, Repeat.ANY, True),
        (DOWN, Repeat.UNREAD, False),
        (DOWN, Repeat.ANY, True),
        (refused(ServerError, 500), Repeat.ANY, False),
        (refused(ServerError, 500, wish=1), Repeat.ANY, True),
        (refused(ServerError, 501), Repeat.ANY, False),
        (Conflict("no", status=409), Repeat.ANY, False),
        (NotFound("no", status=404), Repeat.ANY, False),
    ],
)
def test_only_what_is_safe_is_repeated(error: KonvergeError, repeat: Repeat, again: bool) -> None:
    assert (RetryPolicy().delay(error, attempt=1, repeat=repeat, random=Random(1)) is not None) == again


@given(st.integers(1, 7), st.integers(0, 2**32))
def test_waits_double_within_bounds(attempt: int, seed: int) -> None:
    policy = RetryPolicy(first=0.5, longest=4)
    delay = policy.delay(DOWN, attempt=attempt, repeat=Repeat.ANY, random=Random(seed))
    step = min(4, 0.5 * 2 ** (attempt - 1))
    assert delay is not None
    assert step / 2 <= delay <= step


@given(st.floats(0, 60), st.integers(1, 7), st.integers(0, 2**32))
def test_what_the_server_asks_for_is_never_cut_short(wish: float, attempt: int, seed: int) -> None:
    error = refused(TooManyRequests, 429, wish)
    delay = RetryPolicy().delay(error, attempt=attempt, repeat=Repeat.UNREAD, random=Random(seed))
    assert delay is not None
    assert delay >= wish


def test_patience_ends() -> None:
    policy = RetryPolicy(attempts=3, longest_wish=30)
    assert policy.delay(BUSY, attempt=3, repeat=Repeat.ANY, random=Random(1)) is None
    assert policy.delay(refused(TooManyRequests, 429, 31), attempt=1, repeat=Repeat.ANY, random=Random(1)) is None
