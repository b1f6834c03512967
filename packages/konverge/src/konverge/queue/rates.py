"""A rate limit: a token bucket, stored as the time at which it will be full again."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["RateLimit", "TokenBucket"]


@dataclass(frozen=True)
class RateLimit:
    """At most `burst` at once, and `per_second` in the long run."""

    per_second: float
    burst: int = 1

    def __post_init__(self) -> None:
        if not (self.per_second > 0 and math.isfinite(self.per_second)):
            raise ValueError(f"per_second={self.per_second}: write a positive number, or no limit at all")
        if self.burst < 1:
            raise ValueError(f"burst={self.burst}: write how many may go at once, at least 1")


class TokenBucket:
    """The tokens of a rate limit.

    One number is the whole state: `_full_at`, the time at which every token is back. The same number decides whether
    there is a token and when the next one is available, so a timer set by it never fires too early.
    """

    def __init__(self, limit: RateLimit) -> None:
        self._interval = 1 / limit.per_second
        self._slack = (limit.burst - 1) * self._interval
        self._full_at = -math.inf

    def next_time(self) -> float:
        """Return the time from which a token is available."""
        return self._full_at - self._slack

    def acquire(self, now: float) -> float:
        """Use a token, and return the seconds until it is available."""
        wait = max(0.0, self.next_time() - now)
        self._full_at = max(self._full_at, now) + self._interval
        return wait

    def is_full(self, now: float) -> bool:
        """Report whether every token is back."""
        return self._full_at <= now
