"""Keys that fail, and when each of them may run again. Rules (promise Q4 of the queue):

1. After the n-th failure in a row a key waits for as long as the rate limiter returns: this is its backoff window. A
   limiter that raises, or returns no number of seconds, is logged and replaced by the default backoff for this once.
2. All other adds of the key within its window cause at most one early run.
3. If the early run fails too, the window and the failure count stay as they are.
4. A requested delay (`min_delay`) is always waited for in full, even with new input: there is no early run, and a
   window that ends sooner is extended.
5. A given `delay` replaces the backoff: the window then ends after this delay, whatever it was before.
6. A success clears everything; nothing is stored for a key that does not fail.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Hashable
from typing import Generic, TypeVar

from konverge.queue.rate_limiters import ItemExponentialRateLimiter, RateLimiter

__all__ = ["Retries"]

_log = logging.getLogger("konverge.queue")

K = TypeVar("K", bound=Hashable)


class _Failure:
    """A key that fails: the failures in a row, and the end of its window; `retry_at` is None outside of one.

    `not_before` is the end of a requested delay.
    """

    __slots__ = ("count", "not_before", "ran_early", "retry_at")

    def __init__(self) -> None:
        self.count = 0
        self.retry_at: float | None = None
        self.ran_early = False
        self.not_before = 0.0


class Retries(Generic[K]):
    """The keys that fail."""

    def __init__(self, limiter: RateLimiter[K]) -> None:
        self._limiter = limiter
        self._fallback = ItemExponentialRateLimiter()
        self._failures: dict[K, _Failure] = {}

    def __len__(self) -> int:
        return len(self._failures)

    def count(self, key: K) -> int:
        """Return how many times in a row a key failed."""
        failure = self._failures.get(key)
        return 0 if failure is None else failure.count

    def retry_at(self, key: K) -> float | None:
        """Return the end of a key's window; None when it is not in one."""
        failure = self._failures.get(key)
        return None if failure is None else failure.retry_at

    def start_time(self, key: K, requested: float) -> float:
        """Return when a key may run that was requested for a time."""
        failure = self._failures.get(key)
        if failure is None or failure.retry_at is None or not failure.ran_early:
            return requested
        return max(requested, failure.retry_at)

    def start(self, key: K, now: float) -> None:
        """Record that a key runs: early, or because its window is over."""
        failure = self._failures.get(key)
        if failure is None or failure.retry_at is None:
            return
        if now < failure.retry_at:
            failure.ran_early = True
        else:
            failure.retry_at = None

    def fail(self, key: K, now: float, min_delay: float = 0.0, delay: float | None = None) -> float:
        """Record that the run failed; return the end of the window."""
        failure = self._failures.get(key)
        if failure is None:
            failure = self._failures[key] = _Failure()
        if failure.retry_at is None:
            failure.count += 1
            failure.ran_early = False
            failure.retry_at = now + self._delay(key, failure.count, now)
        if delay is not None:
            failure.retry_at = max(now + delay, failure.not_before)
        if min_delay > 0:
            failure.not_before = max(failure.not_before, now + min_delay)
            failure.retry_at = max(failure.retry_at, failure.not_before)
            failure.ran_early = True
        return failure.retry_at

    def _delay(self, key: K, failures: int, now: float) -> float:
        try:
            delay = self._limiter.delay(key, failures, now)
            if 0 <= delay < math.inf:
                return delay
            _log.error("rate limiter returned no delay", extra={"key": str(key), "delay": str(delay)})
        except Exception:
            _log.exception("rate limiter failed", extra={"key": str(key)})
        return self._fallback.delay(key, failures, now)

    def reset(self, key: K, now: float) -> None:
        """Record new input: clear the failures of the old input, but keep a requested delay."""
        failure = self._failures.pop(key, None)
        if failure is not None and failure.retry_at is not None and failure.not_before > now:
            failure.count = 0
            failure.retry_at = failure.not_before
            self._failures[key] = failure

    def forget(self, key: K) -> None:
        """Record that a key does not fail."""
        self._failures.pop(key, None)
