"""How many events may be written: a bucket of tokens for each object, and one for all of them.

An event that nobody reads is a write that somebody else waits for. Rules that hold here:

1. In any five minutes an object gets no more writes than its bucket holds and regains in that time, and all objects
   together no more than theirs: with the defaults 25 + 10 and 80 + 100.
2. A bucket exists for an object only once a write was granted, and is forgotten only when it is full again. So the
   number of buckets is bounded by the writes granted, and forgetting one never grants more.
3. The last part of each bucket is kept for what matters more (see `Share`): a thousand objects that come up well do not
   silence the one that does not, and counts that grow do not keep a new event out.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum

__all__ = ["Allowance", "EventLimits", "Share", "TokenBucket"]

_NEARLY = 1e-9  # sums of fractions miss whole numbers by less than this
_SHORTEST_WAIT = 0.001


class Share(Enum):
    """How much of a bucket a write may use; the value is the part that it leaves to others."""

    WARNING = 0.0  # a new warning
    NORMAL = 0.25  # a new event that is no warning
    COUNT = 0.5  # a count that grew: it can wait, and nothing is lost


@dataclass(frozen=True, kw_only=True)
class EventLimits:
    """Bounds of an event recorder; durations are seconds.

    - `object_burst`, `object_refill`: writes about one object at once, and how long it takes to regain one.
    - `total_burst`, `total_refill`: the same for all objects together.
    - `window`: an event like one that was seen so recently is counted on that one instead of written anew.
    - `heartbeat`, `longest_heartbeat`: a count that grew is written after the first, then after twice that, and so on
      up to the second.
    - `similar`: events about one object that differ in nothing but their words are written apart up to this number;
      the rest is counted on one more.
    - `queue`: new events that wait to be sent; `series`: events that are remembered.
    - `tries`, `timeout`: how often a write is tried, and how long a try may take.
    """

    object_burst: int = 25
    object_refill: float = 30.0
    total_burst: int = 80
    total_refill: float = 3.0
    window: float = 360.0
    heartbeat: float = 5.0
    longest_heartbeat: float = 300.0
    similar: int = 10
    queue: int = 1000
    series: int = 4096
    tries: int = 5
    timeout: float = 10.0

    def __post_init__(self) -> None:
        for name in ("object_burst", "total_burst", "similar", "queue", "series", "tries"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is a number of 1 or more, got {value!r}")
        for name in ("object_refill", "total_refill", "window", "heartbeat", "longest_heartbeat", "timeout"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < math.inf:
                raise ValueError(f"{name} is a number of seconds above 0, got {value!r}")


class TokenBucket:
    """Tokens that are taken one by one and come back with time.

    Promises: it holds at most `burst`; in any `t` seconds at most `burst + t / refill` are taken.
    """

    __slots__ = ("_at", "_burst", "_refill", "_tokens")

    def __init__(self, burst: int, refill: float, now: float) -> None:
        self._burst = float(burst)
        self._refill = refill
        self._tokens = float(burst)
        self._at = now

    def left(self, now: float) -> float:
        """Give how many tokens there are; a clock that goes back gives none anew."""
        return min(self._burst, self._tokens + max(0.0, now - self._at) / self._refill)

    def full(self, now: float) -> bool:
        """Tell whether every token is back."""
        return self.left(now) >= self._burst

    def wait(self, now: float, share: Share = Share.WARNING) -> float:
        """Give the seconds until a token can be taken and the others' part is left; 0 when it can now."""
        # A bucket of one is nobody's in particular.
        lacking = 1.0 + min(self._burst - 1.0, share.value * self._burst) - self.left(now)
        return max(_SHORTEST_WAIT, lacking * self._refill) if lacking > _NEARLY else 0.0

    def take(self, now: float) -> None:
        """Take a token that `wait` said is there."""
        self._tokens = self.left(now) - 1.0
        self._at = max(now, self._at)


class Allowance:
    """Decides whether one more write about an object is fine."""

    def __init__(self, limits: EventLimits, now: float) -> None:
        self._limits = limits
        self._total = TokenBucket(limits.total_burst, limits.total_refill, now)
        # In the order of their last use, so that those which may be full again stand in front.
        self._objects: dict[Hashable, TokenBucket] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def take(self, about: Hashable, now: float, share: Share) -> float:
        """Take what one write needs and give 0, or take nothing and give the seconds until it may be had."""
        own = self._objects.get(about)
        wait = self._total.wait(now, share)
        if own is not None:
            wait = max(wait, own.wait(now, share))
        if wait > 0.0:
            return wait
        if own is None:
            self._forget_full(now)
            own = TokenBucket(self._limits.object_burst, self._limits.object_refill, now)
        else:
            del self._objects[about]
        self._objects[about] = own
        own.take(now)
        self._total.take(now)
        return 0.0

    def _forget_full(self, now: float) -> None:
        while self._objects:
            oldest = next(iter(self._objects))
            if not self._objects[oldest].full(now):
                return
            del self._objects[oldest]
