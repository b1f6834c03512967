"""Heaps of keys ordered by time, from which any key can be removed.

A key that is removed from the middle only loses its sequence number. Its stale heap entry is discarded when it reaches
the front, or when more than half of the heap is stale. So every step costs O(log n) on average, and a heap has at most
twice as many entries as keys.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from enum import IntEnum
from itertools import count
from typing import Generic, TypeVar

__all__ = ["KeyHeap", "Priority", "QueueItem"]

K = TypeVar("K", bound=Hashable)

_MIN_STALE = 64
"""Fewer stale heap entries than this are not worth a cleanup."""

_sequence = count(1)


class Priority(IntEnum):
    """Which of two ready keys goes first."""

    LOW = 0
    """Work that is not urgent: a first list, a resync, timers."""
    NORMAL = 1
    """Live changes."""
    HIGH = 2


class QueueItem(Generic[K]):
    """A queued key; `time` is since when it is ready, or when it will be."""

    __slots__ = ("heap", "key", "priority", "sequence", "time")

    def __init__(self, key: K, priority: Priority) -> None:
        self.key = key
        self.priority = priority
        self.time = 0.0
        self.sequence = 0
        self.heap: KeyHeap[K] | None = None


class KeyHeap(Generic[K]):
    """Keys in order of time; keys with the same time are in the order in which they were pushed."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, QueueItem[K]]] = []
        self.length = 0
        """The number of keys."""

    def push(self, item: QueueItem[K], time: float) -> None:
        """Add a key, and remove it from the heap that it is in."""
        if item.heap is not None:
            item.heap.remove(item)
        item.time = time
        item.sequence = next(_sequence)
        item.heap = self
        self.length += 1
        heapq.heappush(self._heap, (time, item.sequence, item))

    def remove(self, item: QueueItem[K]) -> None:
        """Remove a key, wherever it is in this heap."""
        item.sequence = 0
        item.heap = None
        self.length -= 1
        if len(self._heap) > 2 * self.length + _MIN_STALE:
            self._heap = [entry for entry in self._heap if entry[1] == entry[2].sequence]
            heapq.heapify(self._heap)

    def head(self) -> QueueItem[K] | None:
        """Return the first key of the heap."""
        heap = self._heap
        while heap:
            _, sequence, item = heap[0]
            if sequence == item.sequence:
                return item
            heapq.heappop(heap)
        return None

    def has_soon_after_head(self, seconds: float) -> bool:
        """Report whether a key is due after the head, within some seconds; one that is due soon may be missed."""
        limit = self._heap[0][0] + seconds
        return any(
            self._heap[0][0] < time <= limit and sequence == item.sequence for time, sequence, item in self._heap[1:3]
        )
