"""When a reflector may send its next request.

`RequestBackoff` decides for one collection; it does not sleep. Rules that every change to this file keeps:

1. Without failures no request is delayed.
2. While requests fail, they start at least one second apart; after a minute of failures, four seconds.
3. The backoff after a failure is 1, 2, 4, 8 s; after a minute of failures, 24 s. Jitter makes each up to a quarter
   longer, so that collections that failed together do not retry together.
4. A Retry-After of the server is a lower bound.
5. The backoff ends only with a watch that stays open for a while. A successful response is not enough: lists that
   succeed between watches that fail would make the two a hot loop.

`Stagger` spreads the requests of many collections that lost the same server at the same moment.
"""

from __future__ import annotations

import asyncio
from random import Random

from konverge.cache.options import ReflectorOptions

__all__ = ["RequestBackoff", "Stagger"]

_MAX_RETRY_AFTER = 600.0
"""A longer Retry-After is treated as a mistake of the server and cut to this."""


class RequestBackoff:
    """The backoff of one collection. All times are those of the caller's clock."""

    def __init__(self, options: ReflectorOptions, random: Random) -> None:
        self._options = options
        self._random = random
        self._last_request = 0.0
        self._not_before = 0.0
        self.failures = 0
        self.failing_since: float | None = None

    def delay(self, now: float) -> float:
        """Return the seconds until the next request may start, 0 for now."""
        if self.failing_since is None:
            return 0.0
        min_interval = self._options.initial_backoff * (4 if self._is_long_failure(now) else 1)
        return max(0.0, self._not_before - now, self._last_request + min_interval - now)

    def record_request(self, now: float) -> None:
        """Record that a request starts."""
        self._last_request = now

    def record_failure(self, now: float, *, retry_after: float | None = None) -> None:
        """Record a failure; `retry_after` is the delay that the server asked for."""
        if self.failing_since is None:
            self.failing_since = now
        options = self._options
        if self._is_long_failure(now):
            step = options.long_failure_backoff
        else:
            step = min(options.max_backoff, options.initial_backoff * 2.0 ** min(self.failures, 30))
        self.failures += 1
        jittered = step * (1 + self._random.random() / 4)
        self._not_before = now + max(jittered, min(retry_after or 0.0, _MAX_RETRY_AFTER))

    def reset(self) -> None:
        """Record that the collection is healthy again."""
        self.failures = 0
        self.failing_since = None

    def _is_long_failure(self, now: float) -> bool:
        return self.failing_since is not None and now - self.failing_since >= self._options.long_failure_after


class Stagger:
    """Spreads the retries of all reflectors of one server over time.

    When a server goes away, all its watches end at once. Twenty reflectors that reconnect together open twenty
    connections in one moment, when the server can bear them least. A few dozen collections get one start every quarter
    of a second; when there are more, all of them together still start within ten seconds.
    """

    def __init__(self, *, interval: float = 0.25, max_total: float = 10.0) -> None:
        self._interval = interval
        self._max_total = max_total
        self._next = float("-inf")
        self._members = 0
        # Held across the sleep: the next start counts from the moment that this one happens, not from when it was due.
        # Otherwise, after the event loop was blocked, all starts that became due meanwhile would happen at once.
        self._lock = asyncio.Lock()

    def register(self) -> None:
        """Count one more collection."""
        self._members += 1

    def unregister(self) -> None:
        """Count one collection less."""
        self._members -= 1

    async def wait(self) -> None:
        """Wait for the next start; return at once if there was none lately."""
        now = asyncio.get_running_loop().time
        async with self._lock:
            if self._next > now():
                await asyncio.sleep(self._next - now())
            self._next = now() + min(self._interval, self._max_total / max(1, self._members))
