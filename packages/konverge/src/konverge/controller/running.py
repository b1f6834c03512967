"""A controller at work: its queue, what fills it, and the workers that empty it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from konverge.cache import Event, EventType, View
from konverge.cache.informers import Informer
from konverge.controller.controller import Controller
from konverge.controller.worker import Outcome, Worker
from konverge.objects import AnyObject, Key, kind_of
from konverge.queue import Priority, QueueStats, WorkQueue
from konverge.reconcile import Journal, Tools
from konverge.reconcile.hot_loops import HotLoopDetector
from konverge.telemetry import GenerationClock
from konverge.triggers import EnqueueReason, Router, Timer, Trigger

__all__ = ["ControllerStats", "Observer", "Running"]

_log = logging.getLogger("konverge.controller")
_LOOK = 0.05

T = TypeVar("T", bound=AnyObject)


@dataclass(frozen=True, slots=True)
class ControllerStats:
    """A controller in numbers."""

    name: str
    queue: QueueStats
    workers: int
    busy: int
    longest_running: float
    unfinished: float
    running: str  # the key that has been running longest
    waits_for: str  # why it does not work yet; "" when it does


class Observer(Protocol):
    """Whoever counts what controllers do; each call must be cheap."""

    def told(self, controller: str, outcome: str, seconds: float) -> None:
        """Take the outcome of a reconcile, and how long it took."""

    def waited(self, controller: str, seconds: float) -> None:
        """Take how long a key was in line."""

    def observed_generation(self, controller: str, seconds: float) -> None:
        """Take how long it was from a new generation to the status that observes it."""

    def restless(self, controller: str) -> None:
        """Take a run that once more wrote what many runs before it had written, with nothing new to do."""


class Running(Generic[T]):
    """One controller, brought to life in steps that a manager takes: `declare`, `feed`, `work`, `close`.

    Promises: nothing is reconciled before every kind that the controller declares is synced and its watch is open, and
    a kind that is not there yet holds up no other controller; between a change in the cache and its key in the queue
    there is no wait.
    """

    def __init__(self, controller: Controller[T], tools: Tools, *, observer: Observer | None = None) -> None:
        name = controller.name
        self.controller = controller
        self.journal = Journal()
        self.queue: WorkQueue[Key] = WorkQueue(
            name,
            backoff=controller.backoff,
            rate=controller.rate,
            observe=(lambda seconds: observer.waited(name, seconds)) if observer is not None else None,
        )
        restless = HotLoopDetector(
            name, told=(lambda: observer.restless(name)) if observer is not None else lambda: None
        )
        self._tools = replace(tools, observed=self._observed, stopping=lambda: self.queue.closed, restless=restless)
        self._observer = observer
        self._generations = GenerationClock()
        self._views: dict[str, View[Any]] = {}
        self._worker: Worker[T] | None = None
        self._opened: dict[Informer, int] = {}  # how often watches had been opened before the work
        self._begun = False

    def declare(self) -> None:
        """Declare every kind and index that this controller reads."""
        cache = self._tools.cache
        for trigger in self.controller.triggers:
            self._views[trigger.name] = cache.declare(trigger.kind, self.controller.options_of(trigger))
        for kind, name, values in self.controller.indexes:
            for view in self._views.values():
                if view.kind == kind_of(kind):
                    view.add_index(name, values)
        self._worker = Worker(
            controller=self.controller,
            queue=self.queue,
            view=self._views[self.controller.triggers[0].name],
            tools=self._tools,
            journal=self.journal,
            told=self._told,
        )

    async def feed(self) -> None:
        """Put into the queue what there is, and from now on whatever changes; runs until it is cancelled."""
        for trigger in self.controller.triggers:
            await self._views[trigger.name].subscribe(self._subscriber(trigger))
        async with asyncio.TaskGroup() as group:
            for timer in self.controller.timers:
                group.create_task(self._follow(timer), name=f"{self.controller.name}: {timer!r}")
            for channel in self.controller.channels:
                group.create_task(channel.run(self._wake), name=f"{self.controller.name}: channel")

    async def work(self) -> None:
        """Reconcile until the queue is closed; begin when every kind of this controller is synced and followed.

        Who takes over after having heard nothing for a while would undo what has been done meanwhile. A watch that is
        open, or was opened since, is enough: some servers let none stay open.
        """
        assert self._worker is not None, "declare comes before work"
        self._opened = {mirror: mirror.openings - mirror.follows for mirror in self._mirrors()}
        await self.synced()
        while self.waits_for():  # noqa: ASYNC110 - reflectors come and go, and this is over at once when all is well
            await asyncio.sleep(_LOOK)
        self._begun = True
        async with asyncio.TaskGroup() as group:
            for number in range(self.controller.max_concurrent_reconciles):
                group.create_task(self._worker.run(), name=f"{self.controller.name} worker {number}")

    async def synced(self) -> None:
        """Wait until every kind of this controller has had its first list."""
        for mirror in self._mirrors():
            await mirror.synced.wait()

    def waits_for(self) -> str:
        """Say what keeps this controller from working, "" when nothing does."""
        reasons = [mirror.waits_for() or self._before_the_start(mirror) for mirror in self._mirrors()]
        return "; ".join(dict.fromkeys(reason for reason in reasons if reason))

    def _before_the_start(self, mirror: Informer) -> str:
        was_open = mirror.openings > self._opened.get(mirror, 0)
        return "" if self._begun or was_open else f"the watch of {mirror.kind.resource} is not open"

    def _mirrors(self) -> list[Informer]:
        return [mirror for view in self._views.values() for mirror in view.mirrors]

    def busy(self) -> tuple[Key, ...]:
        """Give the keys that are being reconciled."""
        return tuple(self._worker.busy) if self._worker is not None else ()

    def close(self) -> None:
        """Hand out no more keys; what runs may end."""
        self.queue.close()

    def stats(self) -> ControllerStats:
        """Give the controller in numbers."""
        busy = dict(self._worker.busy) if self._worker is not None else {}
        oldest = min(busy.items(), key=lambda item: item[1], default=None)
        now = asyncio.get_running_loop().time() if busy else 0.0
        return ControllerStats(
            name=self.controller.name,
            queue=self.queue.stats(),
            workers=self.controller.max_concurrent_reconciles,
            busy=len(busy),
            longest_running=now - oldest[1] if oldest else 0.0,
            unfinished=sum(now - begin for begin in busy.values()),
            running=str(oldest[0]) if oldest else "",
            waits_for=self.waits_for(),
        )

    def _subscriber(self, trigger: Trigger) -> Callable[[Event], None]:
        router = Router(trigger, controller=self.controller.name)

        def tell(event: Event) -> None:
            if trigger.primary and event.new is not None and event.new.generation:
                self._generations.seen(event.key, event.new.generation, asyncio.get_running_loop().time())
            for key, wake, priority, fresh in router.route(event):
                self._wake(key, wake, priority=priority, fresh=fresh)
            if trigger.primary and event.type is EventType.REMOVED:
                self._forget(event.key)

        return tell

    def _wake(
        self, key: Key, wake: EnqueueReason, *, priority: Priority = Priority.NORMAL, fresh: bool = False
    ) -> None:
        self.journal.woken(key, wake)
        self.queue.add(key, priority=priority, fresh=fresh)

    def _told(self, outcome: Outcome, seconds: float) -> None:
        if self._observer is not None:
            self._observer.told(self.controller.name, outcome, seconds)

    def _observed(self, key: Key, generation: int) -> None:
        lag = self._generations.observed(key, generation, asyncio.get_running_loop().time())
        if lag is not None and self._observer is not None:
            self._observer.observed_generation(self.controller.name, lag)

    def _forget(self, key: Key) -> None:
        self._generations.forget(key)
        self.queue.forget(key)
        if self._worker is not None:
            self._worker.forget(key)

    async def _follow(self, timer: Timer) -> None:
        async for key, wake in timer.ticks():
            self._wake(key, wake, priority=Priority.LOW)
