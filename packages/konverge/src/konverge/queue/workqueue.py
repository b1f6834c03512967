"""The queue between what happens and who works on it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from random import Random, getrandbits
from typing import Generic, TypeVar

from konverge.errors import QueueClosed
from konverge.queue.backoff import Backoff
from konverge.queue.lines import Line, Priority, Waiting
from konverge.queue.rates import Bucket, RateLimit
from konverge.queue.retries import Retries

__all__ = ["QueueStats", "WorkQueue"]

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class QueueStats:
    """How a queue stands: keys in line, due later and handed out; what happened so far; waits in seconds.

    `adds` counts the adds of keys that were not waiting already, `gets` the hand-outs, `retries` the failures.
    """

    name: str
    ready: int
    delayed: int
    running: int
    adds: int
    gets: int
    retries: int
    oldest_wait: float
    longest_running: float


@dataclass(frozen=True, slots=True)
class _Run:
    since: float
    priority: Priority


@dataclass(slots=True)
class _Again:
    """What came for a key while it was running."""

    due: float
    priority: Priority
    fresh: bool
    adds: int = 1


class WorkQueue(Generic[K]):
    """Keys that need a reconcile, each at most once.

    A key is *ready* (in line for a worker), *delayed* (due later) or *running* (handed out by `get`, not yet given back
    by `done`). Promises:

    - Q1 a key is never running twice at the same time;
    - Q2 a change is never lost: a key added while it is running is in line again after `done` (unless who added it
      takes that back), and a `get` that is cancelled takes no key with it;
    - Q3 of two delays the earlier wins; a key that is in line stays there;
    - Q4 a failing key backs off on its own: after the n-th failure in a row it waits `Backoff.delay(n)`. While it
      waits, adds that are not `fresh` bring about at most one early run (one that came during the failed run counts as
      well). If that fails too, the key goes on waiting for the same time, neither shorter nor longer, and the count
      stays. Success resets;
    - Q5 no starvation: of two keys in line the higher priority goes first, then the older one; a key counts one level
      higher after each `aging` seconds in line.

    With a `rate` there are no more hand-outs than it allows. After `close` nothing is handed out, and what is added
    leads nowhere. Every step costs O(log n), and nothing is kept of a key that neither waits, runs nor fails.

    Every method but `get` and `drained` is synchronous, so the event loop cannot switch tasks half-way through one.
    That is all the locking there is. Time is the running loop's; construction needs no loop. `observe` is told, at each
    hand-out, how many seconds the key was in line.
    """

    def __init__(
        self,
        name: str = "",
        *,
        backoff: Backoff | None = None,
        rate: RateLimit | None = None,
        aging: float = 30.0,
        random: Random | None = None,
        observe: Callable[[float], None] | None = None,
    ) -> None:
        if not aging > 0:
            raise ValueError(f"aging={aging}: write after how many seconds in line a key counts one level higher")
        self.name = name
        self._aging = aging
        self._observe = observe
        self._bucket = None if rate is None else Bucket(rate)
        self._retries: Retries[K] = Retries(backoff or Backoff(), random or Random(getrandbits(64)))
        self._waiting: dict[K, Waiting[K]] = {}
        self._lines: tuple[Line[K], ...] = tuple(Line() for _ in Priority)
        self._delayed: Line[K] = Line()
        self._running: dict[K, _Run] = {}  # in the order in which they were handed out
        self._again: dict[K, _Again] = {}  # only keys that are running
        self._getters: deque[asyncio.Future[None]] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._closed = False
        self._adds = self._gets = self._failed = 0

    # What happens

    def add(self, key: K, *, after: float = 0.0, priority: Priority = Priority.NORMAL, fresh: bool = False) -> None:
        """Ask for a run of a key, now or later.

        `fresh` says that there is new input: the failures so far are forgotten, and the key need not wait for them.

        Raises: ValueError when `after` is negative or no number.
        """
        if not after >= 0:
            raise ValueError(f"after={after}: write how many seconds later, 0 for now")
        if self._closed:
            return
        now = _now()
        if fresh:
            self._retries.refresh(key, now)
        if key in self._running:
            self._note(key, now + after, priority, fresh)
        else:
            self._adds += key not in self._waiting
            self._want(key, now + after, priority, now)
            self._serve(now)

    def _note(self, key: K, due: float, priority: Priority, fresh: bool) -> None:
        again = self._again.get(key)
        if again is None:
            self._adds += 1
            self._again[key] = _Again(due, priority, fresh)
            return
        again.due = min(again.due, due)
        again.priority = max(again.priority, priority)
        again.fresh = again.fresh or fresh
        again.adds += 1

    # Who works on it

    async def get(self) -> K:
        """Wait for the next key and take it; it is running until `done`. Safe to cancel.

        Raises: QueueClosed once the queue is closed.
        """
        while not self._closed:
            now = _now()
            waiting = self._next(now)
            if waiting is not None:
                self._hand_out(waiting, now)
                self._serve(now)
                return waiting.key
            await self._wait(now)
        raise QueueClosed(f"queue {self.name!r} is closed" if self.name else "the queue is closed")

    def done(self, key: K) -> None:
        """Give a key back; it is in line again if it was added meanwhile, and waits if it failed.

        Raises: ValueError when the key is not running.
        """
        run = self._run_of(key)
        del self._running[key]
        again = self._again.pop(key, None)
        due = self._retries.due(key)
        if not self._running:
            self._idle.set()
        if self._closed:
            return
        now = _now()
        if due is not None:
            self._want(key, due, run.priority, now)
        if again is not None:
            self._want(key, again.due, again.priority, now)
        self._serve(now)

    def take_back(self, key: K, adds: int) -> None:
        """Take back so many adds that came while a key runs: for who knows that there is nothing new in them.

        When there were more, the key is in line again after `done`: nobody can take back what another one added.
        """
        again = self._again.get(key)
        if again is None:
            return
        again.adds -= adds
        if again.adds <= 0:
            del self._again[key]

    def retry(self, key: K, *, at_least: float = 0.0) -> float:
        """Note that the run failed, before `done`; give the seconds until the next one.

        `at_least` is a wait that was asked for: the next run is not earlier, whatever happens. A failure on old input
        does not count when there is new one: the key runs again as that asks for.

        Raises: ValueError when the key is not running.
        """
        self._run_of(key)
        now = _now()
        self._failed += 1
        again = self._again.get(key)
        if again is not None and again.fresh and not at_least:
            due = again.due
        else:
            due = self._retries.fail(key, now, at_least)
        return max(0.0, due - now)

    def forget(self, key: K) -> None:
        """Note that the run succeeded, before `done`: the next failure is the first again."""
        self._retries.forget(key)

    # Questions

    def failures(self, key: K) -> int:
        """Say how often a key failed in a row, early runs aside."""
        return self._retries.count(key)

    def running(self, key: K) -> bool:
        """Tell whether a key is handed out."""
        return key in self._running

    @property
    def closed(self) -> bool:
        """Whether it hands out nothing any more."""
        return self._closed

    def stats(self) -> QueueStats:
        """Say how the queue stands."""
        now = _now()
        self._advance(now)
        heads = [head.at for head in (line.head() for line in self._lines) if head is not None]
        first = next(iter(self._running.values()), None)
        return QueueStats(
            name=self.name,
            ready=sum(map(len, self._lines)),
            delayed=len(self._delayed),
            running=len(self._running),
            adds=self._adds,
            gets=self._gets,
            retries=self._failed,
            oldest_wait=now - min(heads) if heads else 0.0,
            longest_running=now - first.since if first is not None else 0.0,
        )

    # The end

    def close(self) -> None:
        """Hand out nothing any more: whoever waits in `get` is told, what waits for a run is dropped."""
        self._closed = True
        self._waiting.clear()
        self._lines = tuple(Line() for _ in Priority)
        self._delayed = Line()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._getters:
            self._wake_one()

    async def drained(self) -> None:
        """Wait until nothing is running."""
        while self._running:
            await self._idle.wait()

    # Lines

    def _want(self, key: K, due: float, priority: Priority, now: float) -> None:
        self._advance(now)  # a key that is due already is in line since then
        due = self._retries.earliest(key, due)
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = Waiting(key, priority)
        elif waiting.line is not self._delayed:
            if priority > waiting.priority:
                waiting.priority = priority
                self._lines[priority].push(waiting, waiting.at)
            return
        else:
            waiting.priority = max(waiting.priority, priority)
        if due <= now:
            self._lines[waiting.priority].push(waiting, now)
        elif waiting.line is None or due < waiting.at:
            self._delayed.push(waiting, due)

    def _advance(self, now: float) -> None:
        """Put in line what is due."""
        while (head := self._delayed.head()) is not None and head.at <= now:
            self._lines[head.priority].push(head, head.at)

    def _next(self, now: float) -> Waiting[K] | None:
        """Give the key whose turn it is (Q5); None when there is none, or the rate allows none."""
        self._advance(now)
        if self._bucket is not None and self._bucket.next() > now:
            return None
        # The first of each line is the oldest of its priority, so one of them is the best of all.
        heads = [head for head in (line.head() for line in self._lines) if head is not None]
        if len(heads) < 2:
            return heads[0] if heads else None
        return min(heads, key=lambda head: (-self._level(head, now), head.at, head.ticket))

    def _level(self, waiting: Waiting[K], now: float) -> int:
        return min(Priority.HIGH, waiting.priority + int((now - waiting.at) / self._aging))

    def _hand_out(self, waiting: Waiting[K], now: float) -> None:
        if self._observe is not None:
            self._observe(now - waiting.at)  # first: when it raises, the key is still in line
        assert waiting.line is not None
        waiting.line.drop(waiting)
        del self._waiting[waiting.key]
        self._retries.begin(waiting.key, now)
        if self._bucket is not None:
            self._bucket.take(now)
        self._running[waiting.key] = _Run(now, waiting.priority)
        self._idle.clear()
        self._gets += 1

    def _run_of(self, key: K) -> _Run:
        run = self._running.get(key)
        if run is None:
            raise ValueError(f"{key!r} is not running: call this once between get() and the end of its run")
        return run

    # Waiting for keys

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
                self._serve(_now())  # it was woken for a key, which is another worker's now
            raise

    def _serve(self, now: float) -> None:
        """Wake a worker if there is a key for it; each one that takes a key does the same for the next."""
        if not self._getters or self._closed:
            return
        if self._next(now) is not None:
            self._wake_one()
        else:
            self._set_timer(now)

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _set_timer(self, now: float) -> None:
        """See that somebody looks when the next key is due, or the rate allows the next one."""
        at = self._next_moment()
        if at is None or (self._timer is not None and self._timer_at <= at):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = asyncio.get_running_loop().call_at(max(at, now), self._look)

    def _next_moment(self) -> float | None:
        if self._bucket is not None and any(self._lines):
            return self._bucket.next()
        head = self._delayed.head()
        return None if head is None else head.at

    def _look(self) -> None:
        self._timer = None
        self._serve(_now())


def _now() -> float:
    return asyncio.get_running_loop().time()
