"""How many hand-outs there are in a while: a token bucket, kept as the time at which it will be full again."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Bucket", "RateLimit"]


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


class Bucket:
    """The tokens of a limit.

    One number tells it all: `_full`, the time at which every token is back. The same number decides whether a token is
    there and says when to ask again, so a timer that is set by it never comes in vain.
    """

    def __init__(self, limit: RateLimit) -> None:
        self._each = 1 / limit.per_second
        self._slack = (limit.burst - 1) * self._each
        self._full = -math.inf

    def next(self) -> float:
        """Give the time from which on a token is there."""
        return self._full - self._slack

    def take(self, now: float) -> None:
        """Take a token."""
        self._full = max(self._full, now) + self._each
