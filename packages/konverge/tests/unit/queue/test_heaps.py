"""Heaps of keys: the space that removed keys take."""

from __future__ import annotations

import tracemalloc

from konverge.queue.heaps import KeyHeap, Priority, QueueItem


def test_a_heap_whose_keys_are_moved_again_and_again_does_not_grow() -> None:
    """Each move leaves a stale entry that never reaches the front."""
    heap: KeyHeap[int] = KeyHeap()
    items = [QueueItem(number, Priority.NORMAL) for number in range(10)]
    for item in items:
        heap.push(item, 0.0)
    tracemalloc.start()
    try:
        for time in range(20_000):
            heap.push(items[1 + time % 9], float(time))
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 50_000
    assert heap.head() is items[0]
    assert heap.length == 10


def test_keys_leave_in_order_after_a_cleanup() -> None:
    heap: KeyHeap[int] = KeyHeap()
    items = [QueueItem(number, Priority.NORMAL) for number in range(300)]
    for item in items:
        heap.push(item, float(-item.key))
    for item in items[:250]:
        heap.remove(item)
    found = []
    while (head := heap.head()) is not None:
        found.append(head.key)
        heap.remove(head)
    assert found == list(range(299, 249, -1))
