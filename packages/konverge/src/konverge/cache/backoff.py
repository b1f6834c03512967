"""When a follower may ask again.

`Pace` decides for one collection; it does not wait. Rules that hold here:

1. In order, nothing is held back.
2. In trouble, requests start at least a second apart; when it has lasted a minute, four seconds.
3. After a failure the wait is 1, 2, 4, 8 s; when the trouble has lasted a minute, 24 s; each up to a quarter longer, by
   chance, so that what failed together does not come back together.
4. What the server asks for is a lower bound.
5. Trouble ends only with a stream that stays open for a while. An answer is not enough: a list that works between
   watches that do not would make the two of them a busy loop.

`Spacing` keeps many collections apart that lost the same server at the same moment.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random

__all__ = ["Pace", "Patience", "Spacing"]

_LONGEST_WISH = 600.0
"""A server that asks for more than ten minutes is taken to have said something that makes no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a reflector waits for what. Times are in seconds.

    `silence` is how long a watch may say nothing before it is opened anew; `initial_events` how long the stream of a
    list may, and ten times that is how long it may take in all. A watch lasts `shortest_watch` to `longest_watch`, by
    chance. One that stays open for `settled_after` ends a trouble. The waits are those of `konverge.cache.backoff`.
    """

    silence: float = 45.0
    initial_events: float = 30.0
    shortest_watch: float = 300.0
    longest_watch: float = 600.0
    settled_after: float = 4.0
    first_wait: float = 1.0
    longest_wait: float = 8.0
    long_trouble: float = 60.0
    wait_in_long_trouble: float = 24.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is a number of seconds above 0, got {getattr(self, name)}")
        if self.shortest_watch > self.longest_watch:
            raise ValueError("shortest_watch is longer than longest_watch")


class Pace:
    """How fast one collection may ask. All times are those of the caller's clock."""

    def __init__(self, patience: Patience, random: Random) -> None:
        self._patience = patience
        self._random = random
        self._asked = 0.0
        self._not_before = 0.0
        self.failures = 0
        self.trouble_since: float | None = None

    def wait(self, now: float) -> float:
        """Give the seconds until the next request may start, 0 for at once."""
        if self.trouble_since is None:
            return 0.0
        apart = self._patience.first_wait * (4 if self._is_long(now) else 1)
        return max(0.0, self._not_before - now, self._asked + apart - now)

    def asked(self, now: float) -> None:
        """Take note that a request starts."""
        self._asked = now

    def failed(self, now: float, *, wish: float | None = None) -> None:
        """Take note of a failure; `wish` is how long the server wants us to wait."""
        if self.trouble_since is None:
            self.trouble_since = now
        patience = self._patience
        longest = patience.wait_in_long_trouble if self._is_long(now) else patience.longest_wait
        step = longest if self._is_long(now) else min(longest, patience.first_wait * 2.0 ** min(self.failures, 30))
        self.failures += 1
        self._not_before = now + max(step * (1 + self._random.random() / 4), min(wish or 0.0, _LONGEST_WISH))

    def settled(self) -> None:
        """Take note that the trouble is over."""
        self.failures = 0
        self.trouble_since = None

    def _is_long(self, now: float) -> bool:
        return self.trouble_since is not None and now - self.trouble_since >= self._patience.long_trouble


class Spacing:
    """Spaces out what the reflectors of one server ask when they ask again.

    When a server goes away all its watches end at once. Twenty of them coming back together are twenty connections in
    one moment, at the time that it can bear them least. One turn each quarter of a second is what a few dozen
    collections get; where there are more, all of them together still come back within ten seconds.
    """

    def __init__(self, *, apart: float = 0.25, all_within: float = 10.0) -> None:
        self._apart = apart
        self._all_within = all_within
        self._next = float("-inf")
        self._members = 0
        # Across the wait for a turn: the next one counts from the moment that this one is taken, not from when it was
        # due. A loop that stood still would let all go at once that were due meanwhile.
        self._taking = asyncio.Lock()

    def join(self) -> None:
        """Count one more collection."""
        self._members += 1

    def leave(self) -> None:
        """Count one collection less."""
        self._members -= 1

    async def turn(self) -> None:
        """Wait for a turn; when nobody had one lately, it is at once."""
        now = asyncio.get_running_loop().time
        async with self._taking:
            if self._next > now():
                await asyncio.sleep(self._next - now())
            self._next = now() + min(self._apart, self._all_within / max(1, self._members))
