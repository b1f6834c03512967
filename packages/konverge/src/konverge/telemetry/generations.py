"""How long it takes from a new generation of an object to the status that observes it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

__all__ = ["GenerationClock"]

V = TypeVar("V")


class GenerationClock:
    """Remembers when generations were first seen, until they are observed.

    Promises: a lag is given at most once for a generation; one that was observed after others had been skipped is timed
    from when the first of them was seen; at most `limit` keys are remembered, the oldest are forgotten first.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        # The newest generation, since when somebody waits, and since when for the newest.
        self._seen: dict[Hashable, tuple[int, float, float]] = {}
        self._observed: dict[Hashable, int] = {}

    def seen(self, key: Hashable, generation: int, now: float) -> None:
        """Note that an object has a generation, if it is new."""
        if generation <= self._observed.get(key, 0):
            return
        known = self._seen.get(key)
        # Of several that nobody observed the first one counts: that is how long somebody has been waiting.
        if known is None:
            _put(self._seen, key, (generation, now, now), self._limit)
        elif generation > known[0]:
            self._seen[key] = (generation, known[1], now)

    def observed(self, key: Hashable, generation: int, now: float) -> float | None:
        """Note that a status observes a generation; give the seconds it took, None when that is not known."""
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
        """Remember nothing of a key: its object is gone."""
        self._seen.pop(key, None)
        self._observed.pop(key, None)


def _put(kept: dict[Hashable, V], key: Hashable, value: V, limit: int) -> None:
    kept.pop(key, None)
    if len(kept) >= limit:
        del kept[next(iter(kept))]
    kept[key] = value
