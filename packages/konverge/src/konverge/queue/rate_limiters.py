"""Rate limiters: how long a key waits after a failure.

A queue has one limiter for its life. It counts the failures of each key, and calls the limiter once for each failure
that counts (promise Q4 of the queue), in the order in which they happen. `MaxOfRateLimiter` combines limiters.
"""

# ruff: noqa: ARG002 - a limiter need not use all that it gets
from __future__ import annotations

from collections.abc import Hashable
from random import Random, getrandbits
from typing import Protocol, TypeVar

from konverge.queue.backoff import Backoff
from konverge.queue.rates import RateLimit, TokenBucket

__all__ = [
    "BucketRateLimiter",
    "ItemExponentialRateLimiter",
    "MaxOfRateLimiter",
    "NamespaceRateLimiter",
    "RateLimiter",
]

K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)

_MIN_SWEEP = 64
"""Fewer namespaces than this are not worth a cleanup."""


class RateLimiter(Protocol[K_contra]):
    """Decides how long a key waits after a failure."""

    def delay(self, key: K_contra, failures: int, now: float) -> float:
        """Return the seconds, 0 or more, that a key waits after this many failures in a row.

        `now` is the time of the event loop, the same clock for all calls.
        """
        ...


class _Namespaced(Protocol):
    @property
    def namespace(self) -> str: ...


class ItemExponentialRateLimiter:
    """Each key waits for its own backoff. This is the limiter of a queue that has no other."""

    def __init__(self, backoff: Backoff | None = None, *, random: Random | None = None) -> None:
        self._backoff = backoff or Backoff()
        self._random = random or Random(getrandbits(64))

    def delay(self, key: object, failures: int, now: float) -> float:
        """Return the delay of the backoff after this many failures."""
        return self._backoff.delay(failures, self._random)


class BucketRateLimiter:
    """All keys together: at most `burst` retries at once, and `per_second` in the long run."""

    def __init__(self, rate: RateLimit) -> None:
        self._bucket = TokenBucket(rate)

    def delay(self, key: object, failures: int, now: float) -> float:
        """Return the seconds until the token that this call uses is available."""
        return self._bucket.acquire(now)


class NamespaceRateLimiter:
    """The keys of each namespace together: a namespace whose objects fail does not slow down the others.

    Cluster-scoped keys share one bucket. A namespace is dropped once its bucket is full again, so nothing is stored for
    namespaces without recent failures.
    """

    def __init__(self, rate: RateLimit) -> None:
        self._rate = rate
        self._buckets: dict[str, TokenBucket] = {}
        self._sweep_at = _MIN_SWEEP

    def __len__(self) -> int:
        return len(self._buckets)

    def delay(self, key: _Namespaced, failures: int, now: float) -> float:
        """Return the seconds until the token that this call uses in the key's namespace is available."""
        bucket = self._buckets.get(key.namespace)
        if bucket is None:
            self._drop_full_buckets(now)
            bucket = self._buckets[key.namespace] = TokenBucket(self._rate)
        return bucket.acquire(now)

    def _drop_full_buckets(self, now: float) -> None:
        if len(self._buckets) < self._sweep_at:
            return
        self._buckets = {name: bucket for name, bucket in self._buckets.items() if not bucket.is_full(now)}
        self._sweep_at = max(_MIN_SWEEP, 2 * len(self._buckets))


class MaxOfRateLimiter(RateLimiter[K_contra]):
    """The longest delay of several limiters; each of them is called for each failure."""

    def __init__(self, *limiters: RateLimiter[K_contra]) -> None:
        if not limiters:
            raise ValueError("MaxOfRateLimiter() has no limiters: write at least one")
        self._limiters = limiters

    def delay(self, key: K_contra, failures: int, now: float) -> float:
        """Return the longest delay."""
        return max([limiter.delay(key, failures, now) for limiter in self._limiters])
