"""Keys that fail, and when each is due again. Rules (promise Q4 of the queue):

1. After the n-th failure in a row a key waits for `Backoff.delay(n)`: that is its window.
2. Whatever else asks for the key in its window brings about one early run, no more.
3. When the early run fails too, the window stays as it is, and so does the count.
4. A wait that was asked for (`at_least`) is kept to the full, new input or not: no early run, and a window that ends
   sooner is extended.
5. Success forgets everything; nothing is kept of a key that does not fail.
"""

from __future__ import annotations

from collections.abc import Hashable
from random import Random
from typing import Generic, TypeVar

from konverge.queue.backoff import Backoff

__all__ = ["Retries"]

K = TypeVar("K", bound=Hashable)


class _Failing:
    """A key that fails: how often in a row, and the window, `due` is None when it is not in one.

    `asked_until` is the end of a wait that was asked for.
    """

    __slots__ = ("asked_until", "count", "due", "ran_early")

    def __init__(self) -> None:
        self.count = 0
        self.due: float | None = None
        self.ran_early = False
        self.asked_until = 0.0


class Retries(Generic[K]):
    """The keys that fail."""

    def __init__(self, backoff: Backoff, random: Random) -> None:
        self._backoff = backoff
        self._random = random
        self._failing: dict[K, _Failing] = {}

    def __len__(self) -> int:
        return len(self._failing)

    def count(self, key: K) -> int:
        """Say how often a key failed in a row."""
        failing = self._failing.get(key)
        return 0 if failing is None else failing.count

    def due(self, key: K) -> float | None:
        """Give the end of a key's window; None when it is in none."""
        failing = self._failing.get(key)
        return None if failing is None else failing.due

    def earliest(self, key: K, wanted: float) -> float:
        """Give when a key may run that somebody wants at a time."""
        failing = self._failing.get(key)
        if failing is None or failing.due is None or not failing.ran_early:
            return wanted
        return max(wanted, failing.due)

    def begin(self, key: K, now: float) -> None:
        """Note that a key runs: early, or because its window is over."""
        failing = self._failing.get(key)
        if failing is None or failing.due is None:
            return
        if now < failing.due:
            failing.ran_early = True
        else:
            failing.due = None

    def fail(self, key: K, now: float, at_least: float = 0.0) -> float:
        """Note that the run failed, and give the end of the window."""
        failing = self._failing.get(key)
        if failing is None:
            failing = self._failing[key] = _Failing()
        if failing.due is None:
            failing.count += 1
            failing.ran_early = False
            failing.due = now + self._backoff.delay(failing.count, self._random)
        if at_least > 0:
            failing.asked_until = max(failing.asked_until, now + at_least)
            failing.due = max(failing.due, failing.asked_until)
            failing.ran_early = True
        return failing.due

    def refresh(self, key: K, now: float) -> None:
        """Note new input: failures on the old one do not count, but a wait that was asked for stays."""
        failing = self._failing.pop(key, None)
        if failing is not None and failing.due is not None and failing.asked_until > now:
            failing.count = 0
            failing.due = failing.asked_until
            self._failing[key] = failing

    def forget(self, key: K) -> None:
        """Note that a key does not fail."""
        self._failing.pop(key, None)
