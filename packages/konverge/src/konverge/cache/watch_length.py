"""How long the watches of one collection last.

The server sends a bookmark every minute and shortly before a watch ends. A stream that is idle for 45 s is opened
again, so it never receives the former. Watches of idle collections are therefore short enough for the latter: each ends
with a bookmark, and the resourceVersion stays recent. If a proxy cuts streams even sooner, watches become shorter
still.
"""

from __future__ import annotations

from random import Random
from typing import Final

from konverge.cache.options import ReflectorOptions

__all__ = ["WatchLength"]

_MAX_IDLE_LEVEL: Final = 3
"""Watches of idle level 1 end before the idle timeout; each further level halves their length."""


class WatchLength:
    """The timeout of the next watch, by what the previous ones delivered."""

    def __init__(self, options: ReflectorOptions, random: Random) -> None:
        self._options = options
        self._random = random
        self._idle_level = 0

    @property
    def is_short(self) -> bool:
        """Whether the collection is idle, so that watches end before the idle timeout."""
        return self._idle_level > 0

    def timeout(self) -> float:
        """Return a random timeout, so that streams do not all end together."""
        options = self._options
        if self._idle_level:
            return self._random.uniform(0.8, 0.9) * options.idle_timeout / float(2 ** (self._idle_level - 1))
        return self._random.uniform(options.min_watch_timeout, options.max_watch_timeout)

    def update(self, *, events: bool, complete: bool) -> None:
        """Update it by whether a watch delivered events and, if not, by whether it reached its end or a bookmark."""
        if events:
            self._idle_level = 0
        elif complete:
            self._idle_level = max(1, self._idle_level - 1)
        else:
            self._idle_level = min(_MAX_IDLE_LEVEL, self._idle_level + 1)
