"""Rate limits of events: a token bucket for each object, and one for all objects together.

Events must not delay more important writes. Rules that hold here:

1. In any five minutes an object gets no more writes than its bucket holds and regains in that time, and all objects
   together no more than theirs: with the defaults 25 + 10 and 80 + 100.
2. An object gets a bucket with its first write, and the bucket is dropped only when it is full again. So the number of
   buckets is bounded by the number of writes, and dropping one never allows more writes.
3. A part of each bucket is reserved for more important events (see `Share`): events of a thousand healthy objects do
   not crowd out those of a failing one, and growing counts do not crowd out new events.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum

__all__ = ["EventLimits", "EventRateLimiter", "Share", "TokenBucket"]

_TOLERANCE = 1e-9  # for rounding errors in sums of fractions
_MIN_WAIT = 0.001


class Share(Enum):
    """How much of a bucket a write may use; the value is the part that is reserved for others."""

    WARNING = 0.0  # a new warning
    NORMAL = 0.25  # a new event that is not a warning
    COUNT = 0.5  # a count that has grown: it can wait, and nothing is lost


@dataclass(frozen=True, kw_only=True)
class EventLimits:
    """The limits of an event recorder; durations are seconds.

    - `object_burst`, `object_interval`: the writes about one object at once, and the time to regain one.
    - `total_burst`, `total_interval`: the same for all objects together.
    - `window`: an event that repeats an earlier one within this time increments its count instead of being written.
    - `heartbeat`, `max_heartbeat`: a count that has grown is written after the first, then after twice that, and so on
      up to the second.
    - `messages`: events about one object that differ only in their message are written as separate events up to this
      number; the others are combined into one more.
    - `queue`: new events that wait to be sent; `series`: events that are stored.
    - `attempts`, `timeout`: how often a write is attempted, and how long an attempt may take.
    """

    object_burst: int = 25
    object_interval: float = 30.0
    total_burst: int = 80
    total_interval: float = 3.0
    window: float = 360.0
    heartbeat: float = 5.0
    max_heartbeat: float = 300.0
    messages: int = 10
    queue: int = 1000
    series: int = 4096
    attempts: int = 5
    timeout: float = 10.0

    def __post_init__(self) -> None:
        for name in ("object_burst", "total_burst", "messages", "queue", "series", "attempts"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is a number of 1 or more, got {value!r}")
        for name in ("object_interval", "total_interval", "window", "heartbeat", "max_heartbeat", "timeout"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < math.inf:
                raise ValueError(f"{name} is a number of seconds greater than 0, got {value!r}")


class TokenBucket:
    """A bucket of tokens that refills with time.

    Promises: it holds at most `burst`; in any `t` seconds at most `burst + t / interval` are taken.
    """

    __slots__ = ("_at", "_burst", "_interval", "_tokens")

    def __init__(self, burst: int, interval: float, now: float) -> None:
        self._burst = float(burst)
        self._interval = interval
        self._tokens = float(burst)
        self._at = now

    def left(self, now: float) -> float:
        """Return the number of tokens; a clock that goes back adds none."""
        return min(self._burst, self._tokens + max(0.0, now - self._at) / self._interval)

    def is_full(self, now: float) -> bool:
        """Report whether the bucket is full."""
        return self.left(now) >= self._burst

    def wait(self, now: float, share: Share = Share.WARNING) -> float:
        """Return the seconds until a token can be taken and the reserved part is left; 0 if it can be taken now."""
        # A bucket with one token has no reserved part.
        missing = 1.0 + min(self._burst - 1.0, share.value * self._burst) - self.left(now)
        return max(_MIN_WAIT, missing * self._interval) if missing > _TOLERANCE else 0.0

    def take(self, now: float) -> None:
        """Remove a token, after `wait` has returned 0."""
        self._tokens = self.left(now) - 1.0
        self._at = max(now, self._at)


class EventRateLimiter:
    """Decides whether one more write about an object is allowed."""

    def __init__(self, limits: EventLimits, now: float) -> None:
        self._limits = limits
        self._total = TokenBucket(limits.total_burst, limits.total_interval, now)
        # Least recently used first: these may be full again.
        self._objects: dict[Hashable, TokenBucket] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def take(self, regarding: Hashable, now: float, share: Share) -> float:
        """Remove the tokens for one write and return 0, or return the seconds until they are available."""
        bucket = self._objects.get(regarding)
        wait = self._total.wait(now, share)
        if bucket is not None:
            wait = max(wait, bucket.wait(now, share))
        if wait > 0.0:
            return wait
        if bucket is None:
            self._drop_full(now)
            bucket = TokenBucket(self._limits.object_burst, self._limits.object_interval, now)
        else:
            del self._objects[regarding]
        self._objects[regarding] = bucket
        bucket.take(now)
        self._total.take(now)
        return 0.0

    def _drop_full(self, now: float) -> None:
        while self._objects:
            oldest = next(iter(self._objects))
            if not self._objects[oldest].is_full(now):
                return
            del self._objects[oldest]
