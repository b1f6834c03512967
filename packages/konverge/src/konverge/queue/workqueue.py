"""The work queue between the triggers and the workers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from konverge.errors import QueueClosed
from konverge.queue.backoff import Backoff
from konverge.queue.heaps import KeyHeap, Priority, QueueItem
from konverge.queue.rate_limiters import ItemExponentialRateLimiter, RateLimiter
from konverge.queue.rates import RateLimit, TokenBucket
from konverge.queue.retries import Retries

__all__ = ["QueueStats", "WorkQueue"]

K = TypeVar("K", bound=Hashable)

_LOW_PRIORITY_SLACK = 0.02


def _metric(kind: Literal["gauge", "counter"], name: str, text: str) -> Any:
    """Return a field that is a metric too: this is all that a metric of queues needs, and a value in `stats`."""
    return field(metadata={"metric": (kind, name, text)})


@dataclass(frozen=True, kw_only=True)
class QueueStats:
    """The keys of a queue by state, its counters, and the longest times in seconds.

    `adds` counts the adds of keys that were not queued yet, `gets` the returned keys, `retries` the failures.
    """

    name: str
    ready: int
    delayed: int = _metric("gauge", "konverge_queue_delayed", "Keys that are due later")
    in_flight: int
    adds: int = _metric("counter", "konverge_queue_adds", "Keys added to the queue")
    gets: int
    retries: int = _metric("counter", "konverge_queue_retries", "Keys requeued with backoff")
    oldest_wait: float = _metric("gauge", "konverge_queue_oldest_wait_seconds", "Time the oldest ready key has waited")
    longest_running: float


class _Run(Struct, frozen=True):
    since: float
    priority: Priority
    wait_time: float


class _PendingAdd(Struct):
    """The adds of a key that is in flight."""

    ready_at: float
    priority: Priority
    reset_backoff: bool


class WorkQueue(Generic[K]):
    """Keys that need a reconcile, each at most once.

    A key is *ready* (waiting for a worker), *delayed* (ready later) or *in flight* (returned by `get` and not yet
    passed to `done`). Promises:

    - Q1 a key is never in flight twice at the same time;
    - Q2 a change is never lost: a key added while it is in flight is queued again by `done`, and a cancelled `get`
      removes no key;
    - Q3 of two delays the earlier wins; a ready key stays ready;
    - Q4 each failing key has its own backoff: after the n-th failure in a row it waits for as long as the rate limiter
      returns, by default `Backoff.delay(n)`. While it waits, adds without `reset_backoff` cause at most one early run
      (an add during the failed run counts as one). If that fails too, the key waits for the rest of the same delay, and
      the failure count stays. A success resets it;
    - Q5 no starvation: of two ready keys the one with the higher priority goes first, then the older one; the priority
      of a key rises by one level after each `raise_priority_after` seconds in which it was ready.

    A delayed key of low priority may become ready up to 20 ms late, together with others that are due then: a process
    that wakes up for each of them needs a third more CPU. Other keys wait for it only if they are due in these 20 ms.

    With a `rate`, `get` returns no more keys than it allows. After `close`, `get` returns no key and adds have no
    effect. Every step costs O(log n), and nothing is stored for a key that is not queued, in flight or failing.

    Every method except `get` and `wait_until_idle` is synchronous, so the event loop cannot switch tasks half-way
    through one. No other locking is needed. Time is the running loop's; construction needs no loop.
    """

    def __init__(
        self,
        name: str = "",
        *,
        backoff: Backoff | None = None,
        rate_limiter: RateLimiter[K] | None = None,
        rate: RateLimit | None = None,
        raise_priority_after: float = 30.0,
        random: Random | None = None,
    ) -> None:
        if not raise_priority_after > 0:
            raise ValueError(f"raise_priority_after={raise_priority_after}: write a number of seconds above 0")
        if backoff is not None and rate_limiter is not None:
            raise ValueError("backoff and rate_limiter: write one of them, or MaxOfRateLimiter for both")
        self.name = name
        self._raise_priority_after = raise_priority_after
        self._bucket = None if rate is None else TokenBucket(rate)
        self._retries: Retries[K] = Retries(rate_limiter or ItemExponentialRateLimiter(backoff, random=random))
        self._items: dict[K, QueueItem[K]] = {}
        self._ready: tuple[KeyHeap[K], ...] = tuple(KeyHeap() for _ in Priority)
        self._delayed: KeyHeap[K] = KeyHeap()
        self._in_flight: dict[K, _Run] = {}  # in the order in which `get` returned them
        self._pending: dict[K, _PendingAdd] = {}  # only keys that are in flight
        self._getters: deque[asyncio.Future[None]] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._closed = False
        self._adds = self._gets = self._failed = 0

    # Adding keys

    def add(
        self, key: K, *, after: float = 0.0, priority: Priority = Priority.NORMAL, reset_backoff: bool = False
    ) -> None:
        """Add a key, now or after a delay.

        `reset_backoff` is for new input: it clears the failures so far, and the key does not wait for its backoff.

        Raises: ValueError when `after` is negative or not a number.
        """
        if not after >= 0:
            raise ValueError(f"after={after}: write how many seconds later, 0 for now")
        if self._closed:
            return
        now = _now()
        if reset_backoff:
            self._retries.reset(key, now)
        if key in self._in_flight:
            self._add_pending(key, now + after, priority, reset_backoff)
        else:
            self._adds += key not in self._items
            self._schedule(key, now + after, priority, now)
            self._notify_getter(now)

    def _add_pending(self, key: K, ready_at: float, priority: Priority, reset_backoff: bool) -> None:
        pending = self._pending.get(key)
        if pending is None:
            self._adds += 1
            self._pending[key] = _PendingAdd(ready_at, priority, reset_backoff)
            return
        pending.ready_at = min(pending.ready_at, ready_at)
        pending.priority = max(pending.priority, priority)
        pending.reset_backoff = pending.reset_backoff or reset_backoff

    # Processing keys

    async def get(self) -> K:
        """Wait for the next key and return it; it is in flight until `done`. Safe to cancel.

        Raises: QueueClosed once the queue is closed.
        """
        while not self._closed:
            now = _now()
            item = self._next(now)
            if item is not None:
                self._start(item, now)
                self._notify_getter(now)
                return item.key
            await self._wait(now)
        raise QueueClosed(f"queue {self.name!r} is closed" if self.name else "the queue is closed")

    def done(self, key: K) -> None:
        """Finish a key; queue it again if it was added meanwhile, or with a delay if it failed.

        Raises: ValueError when the key is not in flight.
        """
        run = self._require_run(key)
        del self._in_flight[key]
        pending = self._pending.pop(key, None)
        ready_at = self._retries.retry_at(key)
        if not self._in_flight:
            self._idle.set()
        if self._closed:
            return
        now = _now()
        if ready_at is not None:
            self._schedule(key, ready_at, run.priority, now)
        if pending is not None:
            self._schedule(key, pending.ready_at, pending.priority, now)
        self._notify_getter(now)

    def retry(self, key: K, *, min_delay: float = 0.0, delay: float | None = None) -> float:
        """Record that the run failed, before `done`; return the seconds until the next run.

        `min_delay` is a requested delay: the next run never starts earlier. `delay` replaces the delay of the backoff.
        A failure on old input does not count if there is new input: the key then runs when the new input was added for.

        Raises: ValueError when the key is not in flight.
        """
        self._require_run(key)
        now = _now()
        self._failed += 1
        pending = self._pending.get(key)
        if pending is not None and pending.reset_backoff and not min_delay:
            ready_at = pending.ready_at
        else:
            ready_at = self._retries.fail(key, now, min_delay, delay)
        return max(0.0, ready_at - now)

    def forget(self, key: K) -> None:
        """Record that the run succeeded, before `done`: the next failure counts as the first."""
        self._retries.forget(key)

    # State

    def failures(self, key: K) -> int:
        """Return how many times in a row a key failed, without early runs."""
        return self._retries.count(key)

    def is_in_flight(self, key: K) -> bool:
        """Report whether a key is in flight."""
        return key in self._in_flight

    def wait_time(self, key: K) -> float:
        """Return for how many seconds a key was ready before its run.

        Raises: ValueError when the key is not in flight.
        """
        return self._require_run(key).wait_time

    @property
    def has_ready(self) -> bool:
        """Whether keys wait for a worker, as far as is known: the next `get` may find that more are due."""
        return len(self._items) > self._delayed.length

    @property
    def closed(self) -> bool:
        """Whether the queue is closed."""
        return self._closed

    def stats(self) -> QueueStats:
        """Return the numbers of keys, the counters and the longest times."""
        now = _now()
        self._advance(now)
        heads = [head.time for head in (heap.head() for heap in self._ready) if head is not None]
        first = next(iter(self._in_flight.values()), None)
        return QueueStats(
            name=self.name,
            ready=len(self._items) - self._delayed.length,
            delayed=self._delayed.length,
            in_flight=len(self._in_flight),
            adds=self._adds,
            gets=self._gets,
            retries=self._failed,
            oldest_wait=now - min(heads) if heads else 0.0,
            longest_running=now - first.since if first is not None else 0.0,
        )

    # Shutdown

    def close(self) -> None:
        """Close the queue: each waiting `get` raises QueueClosed, and all queued keys are dropped."""
        self._closed = True
        self._items.clear()
        self._ready = tuple(KeyHeap() for _ in Priority)
        self._delayed = KeyHeap()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._getters:
            self._release_getter()

    async def wait_until_idle(self) -> None:
        """Wait until no key is in flight."""
        while self._in_flight:
            await self._idle.wait()

    # Heaps

    def _schedule(self, key: K, ready_at: float, priority: Priority, now: float) -> None:
        self._advance(now)  # a delayed key that is due by now has been ready since then
        ready_at = self._retries.start_time(key, ready_at)
        item = self._items.get(key)
        if item is None:
            item = self._items[key] = QueueItem(key, priority)
        elif item.heap is not self._delayed:
            if priority > item.priority:
                item.priority = priority
                self._ready[priority].push(item, item.time)
            return
        else:
            item.priority = max(item.priority, priority)
        if ready_at <= now:
            self._ready[item.priority].push(item, now)
        elif item.heap is None or ready_at < item.time:
            self._delayed.push(item, ready_at)

    def _advance(self, now: float) -> None:
        """Move the delayed keys that are due to the ready heaps."""
        delayed = self._delayed
        while delayed.length and (head := delayed.head()) is not None and head.time <= now:
            self._ready[head.priority].push(head, head.time)

    def _next(self, now: float) -> QueueItem[K] | None:
        """Return the ready key that goes first (Q5); None when there is none, or when the rate allows none."""
        self._advance(now)
        if self._bucket is not None and self._bucket.next_time() > now:
            return None
        # The head of each heap is the oldest key of its priority, so the first of all is one of the heads.
        first: QueueItem[K] | None = None
        for heap in self._ready:
            head = heap.head() if heap.length else None
            if head is not None and (first is None or self._rank(head, now) < self._rank(first, now)):
                first = head
        return first

    def _rank(self, item: QueueItem[K], now: float) -> tuple[int, float, int]:
        level = min(Priority.HIGH, item.priority + int((now - item.time) / self._raise_priority_after))
        return -level, item.time, item.sequence

    def _start(self, item: QueueItem[K], now: float) -> None:
        assert item.heap is not None
        item.heap.remove(item)
        del self._items[item.key]
        self._retries.start(item.key, now)
        if self._bucket is not None:
            self._bucket.acquire(now)
        self._in_flight[item.key] = _Run(now, item.priority, now - item.time)
        self._idle.clear()
        self._gets += 1

    def _require_run(self, key: K) -> _Run:
        run = self._in_flight.get(key)
        if run is None:
            raise ValueError(f"{key!r} is not in flight: call this once between get() and done()")
        return run

    # Waiting getters

    async def _wait(self, now: float) -> None:
        getter = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        self._set_timer(now)
        try:
            await getter
        except BaseException:
            if getter in self._getters:
                self._getters.remove(getter)
            elif getter.done() and not getter.cancelled():
                self._notify_getter(_now())  # it was notified of a key, which another worker can have now
            raise

    def _notify_getter(self, now: float) -> None:
        """Wake one waiting `get` if there is a key for it; each `get` that returns a key does the same for the next."""
        if not self._getters or self._closed:
            return
        if self._next(now) is not None:
            self._release_getter()
        else:
            self._set_timer(now)

    def _release_getter(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _set_timer(self, now: float) -> None:
        """Set the timer to when the next key is ready, or when the rate allows the next one."""
        if self._bucket is not None and self.has_ready:
            time = self._bucket.next_time()
        elif (head := self._delayed.head()) is not None:
            time = head.time
            if head.priority is Priority.LOW and self._delayed.has_soon_after_head(_LOW_PRIORITY_SLACK):
                time += _LOW_PRIORITY_SLACK
        else:
            return
        if self._timer is not None:
            if self._timer_at <= time:
                return
            self._timer.cancel()
        self._timer_at = time
        self._timer = asyncio.get_running_loop().call_at(max(time, now), self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self._notify_getter(_now())


def _now() -> float:
    return asyncio.get_running_loop().time()
