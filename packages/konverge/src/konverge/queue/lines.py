"""Where keys wait: lines ordered by time, from which any key can be taken out.

A key that leaves from the middle only loses its ticket; what is left of it in the heap is thrown away when it comes to
the front, or when more than half of the heap is such leftovers. So every step costs O(log n) on average, and a heap
holds at most twice the keys that wait in it.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from enum import IntEnum
from itertools import count
from typing import Generic, TypeVar

__all__ = ["Line", "Priority", "Waiting"]

K = TypeVar("K", bound=Hashable)

_LEFTOVERS = 64
"""So many leftovers are not worth the work of throwing them away."""

_tickets = count(1)


class Priority(IntEnum):
    """Which of two keys in line goes first."""

    LOW = 0
    """What nobody waits for: a first list, a resync, timers."""
    NORMAL = 1
    """Live changes."""
    HIGH = 2


class Waiting(Generic[K]):
    """A key that waits: in a line, `at` is since when it is in line, or when it is due."""

    __slots__ = ("at", "key", "line", "priority", "ticket")

    def __init__(self, key: K, priority: Priority) -> None:
        self.key = key
        self.priority = priority
        self.at = 0.0
        self.ticket = 0
        self.line: Line[K] | None = None


class Line(Generic[K]):
    """Keys in order of time; those of one time in the order in which they came."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Waiting[K]]] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def push(self, waiting: Waiting[K], at: float) -> None:
        """Put a key in line, out of the one that it is in."""
        if waiting.line is not None:
            waiting.line.drop(waiting)
        waiting.at = at
        waiting.ticket = next(_tickets)
        waiting.line = self
        self._length += 1
        heapq.heappush(self._heap, (at, waiting.ticket, waiting))

    def drop(self, waiting: Waiting[K]) -> None:
        """Take a key out of this line, wherever it stands."""
        waiting.ticket = 0
        waiting.line = None
        self._length -= 1
        if len(self._heap) > 2 * self._length + _LEFTOVERS:
            self._heap = [one for one in self._heap if one[1] == one[2].ticket]
            heapq.heapify(self._heap)

    def head(self) -> Waiting[K] | None:
        """Give the first key of the line."""
        heap = self._heap
        while heap:
            _, ticket, waiting = heap[0]
            if ticket == waiting.ticket:
                return waiting
            heapq.heappop(heap)
        return None
