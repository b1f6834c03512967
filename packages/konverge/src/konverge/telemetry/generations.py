"""The time from a new generation of an object to the status that observes it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

__all__ = ["GenerationClock"]

V = TypeVar("V")


class GenerationClock:
    """Store when each generation was first seen, until a status observes it.

    Promises: a generation is timed at most once. If generations were skipped, the time runs from the first of them. At
    most `limit` keys are stored; the oldest is dropped first.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        # The newest generation, when the oldest unobserved one was seen, and when the newest one was seen.
        self._seen: dict[Hashable, tuple[int, float, float]] = {}
        self._observed: dict[Hashable, int] = {}

    def seen(self, key: Hashable, generation: int, now: float) -> None:
        """Record that an object has a generation, if it is new."""
        if generation <= self._observed.get(key, 0):
            return
        known = self._seen.get(key)
        # The first of several unobserved generations counts: a user has waited since then.
        if known is None:
            _put(self._seen, key, (generation, now, now), self._limit)
        elif generation > known[0]:
            self._seen[key] = (generation, known[1], now)

    def observed(self, key: Hashable, generation: int, now: float) -> float | None:
        """Record that a status observes a generation; return the seconds it took, or None if that is not known."""
        if generation > self._observed.get(key, 0):
            _put(self._observed, key, generation, self._limit)
        known = self._seen.get(key)
        if known is None:
            return None
        if generation < known[0]:
            self._seen[key] = (known[0], known[2], known[2])
            return None
        del self._seen[key]
        return max(0.0, now - known[1])

    def forget(self, key: Hashable) -> None:
        """Drop a key whose object is gone."""
        self._seen.pop(key, None)
        self._observed.pop(key, None)


def _put(entries: dict[Hashable, V], key: Hashable, value: V, limit: int) -> None:
    entries.pop(key, None)
    if len(entries) >= limit:
        del entries[next(iter(entries))]
    entries[key] = value
