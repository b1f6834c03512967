"""A running controller: its queue, the sources that fill it, and the workers that process it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from konverge.cache import Event, EventType, Lister
from konverge.cache.informers import Informer
from konverge.controller.controller import Controller
from konverge.controller.enqueue_filter import EnqueueFilter
from konverge.controller.generations import GenerationObserver
from konverge.controller.worker import Worker
from konverge.errors import NotSynced
from konverge.objects import AnyObject, Key, kind_of
from konverge.queue import Priority, QueueStats, WorkQueue
from konverge.reconcile import Journal, JournalObserver, Observers, ReconcileDependencies, ReconcileObserver
from konverge.reconcile.declared import DeclaredKinds
from konverge.reconcile.hot_loops import HotLoopDetector
from konverge.telemetry import GenerationClock
from konverge.triggers import CacheReader, Timer, Trigger, TriggerHandler

__all__ = ["ControllerStats", "RunningController"]

_RESYNC_BATCH = 500

T = TypeVar("T", bound=AnyObject)


@dataclass(frozen=True, slots=True)
class ControllerStats:
    """The numbers of a controller; durations are seconds. `not_ready_reason` is "" once the workers may start."""

    name: str
    queue: QueueStats
    workers: int
    active_workers: int
    longest_running: float
    unfinished: float
    longest_running_key: str
    not_ready_reason: str


class RunningController(Generic[T]):
    """One controller at work. A manager calls `register`, `run_sources`, `run_workers` and `close`, in this order.

    Promises: no reconcile starts before every kind that the controller declares is synced and its watch was opened. A
    kind that the server does not serve yet delays no other controller. Nothing waits between a change in the cache and
    the add of its key to the queue.
    """

    def __init__(
        self,
        controller: Controller[T],
        dependencies: ReconcileDependencies,
        *,
        observers: Iterable[ReconcileObserver] = (),
        journal: Journal | None = None,
    ) -> None:
        self.controller = controller
        self.journal = journal if journal is not None else Journal()
        self.queue: WorkQueue[Key] = WorkQueue(
            controller.name, rate_limiter=controller.rate_limiter(), rate=controller.rate
        )
        self._generations = GenerationClock()
        self._observers = Observers(  # the first two tell the others what they found
            HotLoopDetector(controller.name, dependencies.cache),
            GenerationObserver(self._generations),
            JournalObserver(self.journal),
            *observers,
        )
        self._filter = EnqueueFilter(controller.name, self.queue, self._observers)
        self._dependencies = replace(
            dependencies,
            stopping=lambda: self.queue.closed,
            observers=self._observers,
            record_write=self._filter.record_write,
            read_only=controller.read_only,
            declared=DeclaredKinds(controller.name, controller.applied_kinds()),
        )
        self._listers: dict[str, Lister[Any]] = {}
        self._worker: Worker[T] | None = None
        self._watches_before: dict[Informer, int] = {}  # watches that had ended before `run_workers`
        self._started = False

    def register(self) -> None:
        """Register every kind and index that this controller reads with the cache."""
        cache = self._dependencies.cache
        for trigger in self.controller.triggers:
            self._listers[trigger.name] = cache.declare(trigger.kind, self.controller.options_of(trigger))
        for kind, name, values in self.controller.indexes:
            for lister in self._listers.values():
                if lister.kind == kind_of(kind):
                    lister.add_index(name, values)
        self._worker = Worker(
            controller=self.controller,
            queue=self.queue,
            lister=self._listers[self.controller.triggers[0].name],
            dependencies=self._dependencies,
            enqueue_filter=self._filter,
        )

    async def run_sources(self) -> None:
        """Enqueue all existing objects, and from then on every change; run timers and channels until cancelled."""
        reader = CacheReader(self._listers.values())
        handlers = {
            one.name: TriggerHandler(one, controller=self.controller.name, reader=reader)
            for one in self.controller.triggers
        }
        for trigger in self.controller.triggers:
            await self._listers[trigger.name].subscribe(self._event_handler(trigger, handlers[trigger.name]))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._require_cache_sync(), name=f"{self.controller.name}: cache sync")
            for trigger in self.controller.triggers:
                if trigger.resync is not None:
                    resyncs = self._run_resync(trigger.resync, self._listers[trigger.name], handlers[trigger.name])
                    group.create_task(resyncs, name=f"{self.controller.name}: resync")
            for informer in self._informers():
                if informer.options.optional:
                    served = self._enqueue_when_served(informer, handlers[self.controller.triggers[0].name])
                    group.create_task(served, name=f"{self.controller.name}: {informer.kind.kind} served")
            for timer in self.controller.timers:
                group.create_task(self._run_timer(timer), name=f"{self.controller.name}: {timer!r}")
            for channel in self.controller.channels:
                group.create_task(channel.run(self._filter.add_key), name=f"{self.controller.name}: channel")

    async def run_workers(self) -> None:
        """Reconcile until the queue is closed, once every kind of this controller is synced and its watch is open.

        A new leader with a stale cache would revert changes made since its last event. A watch that is open, or was
        opened since this call, is enough: some servers let no watch stay open.
        """
        assert self._worker is not None, "call register before run_workers"
        self._watches_before = {one: one.watch_count - one.is_watching for one in self._informers()}
        await self.wait_for_cache_sync()
        await self._dependencies.cache.changes.wait_for(lambda: not self.not_ready_reason())
        self._started = True
        async with asyncio.TaskGroup() as group:
            for number in range(self.controller.max_concurrent_reconciles):
                group.create_task(self._worker.run(), name=f"{self.controller.name} worker {number}")

    async def wait_for_cache_sync(self) -> None:
        """Wait until the first list of every kind of this controller is complete."""
        for informer in self._informers():
            await self._dependencies.cache.changes.wait_for(partial(_is_synced_or_missing, informer))

    def missing_declarations(self) -> tuple[str, ...]:
        """Return a line for each kind that was applied although the controller does not declare it."""
        return self._dependencies.declared.errors()

    def not_ready_reason(self) -> str:
        """Return why the workers cannot start, or "" if they can."""
        reasons = [one.not_synced_reason() or self._not_watched_reason(one) for one in self._informers()]
        return "; ".join(dict.fromkeys(reason for reason in reasons if reason))

    def _not_watched_reason(self, informer: Informer) -> str:
        was_open = informer.watch_count > self._watches_before.get(informer, 0)
        return (
            ""
            if self._started or was_open or informer.is_missing
            else f"the watch of {informer.kind.resource} is not open"
        )

    def _informers(self) -> list[Informer]:
        return [informer for lister in self._listers.values() for informer in lister.informers]

    def active_keys(self) -> tuple[Key, ...]:
        """Return the keys that are being reconciled."""
        return tuple(self._worker.started) if self._worker is not None else ()

    def close(self) -> None:
        """Close the queue: active reconciles may end, and no other starts."""
        self.queue.close()

    def stats(self) -> ControllerStats:
        """Return the numbers of the controller."""
        started = dict(self._worker.started) if self._worker is not None else {}
        oldest = min(started.items(), key=lambda item: item[1], default=None)
        now = asyncio.get_running_loop().time() if started else 0.0
        return ControllerStats(
            name=self.controller.name,
            queue=self.queue.stats(),
            workers=self.controller.max_concurrent_reconciles,
            active_workers=len(started),
            longest_running=now - oldest[1] if oldest else 0.0,
            unfinished=sum(now - start for start in started.values()),
            longest_running_key=str(oldest[0]) if oldest else "",
            not_ready_reason=self.not_ready_reason(),
        )

    def _event_handler(self, trigger: Trigger, handler: TriggerHandler) -> Callable[[Event], None]:
        def handle(event: Event) -> None:
            if trigger.primary and event.new is not None and event.new.generation:
                self._generations.seen(event.key, event.new.generation, asyncio.get_running_loop().time())
            for request in handler.handle(event):
                self._filter.add(request)
            if trigger.primary and event.type is EventType.DELETED:
                self._forget(event.key)

        return handle

    def _forget(self, key: Key) -> None:
        self.queue.forget(key)
        self._observers.forget(key)
        if self._worker is not None:
            self._worker.forget(key)

    async def _require_cache_sync(self) -> None:
        """Raise NotSynced when the caches are not synced in time.

        This does not wait for the lease: a process whose caches do not sync does not compete for it.
        """
        timeout = self.controller.cache_sync_timeout
        if timeout is None:
            return
        try:
            async with asyncio.timeout(timeout):
                await self.wait_for_cache_sync()
        except TimeoutError:
            reasons = {str(one.kind): one.not_synced_reason() for one in self._informers() if not one.synced.is_set()}
            texts = (f"{kind} cache not synced after {timeout:g} s: {reason}" for kind, reason in reasons.items())
            message = f"controller {self.controller.name}: {'; '.join(texts)}"
            raise NotSynced(message, reasons=reasons) from None

    async def _enqueue_when_served(self, informer: Informer, handler: TriggerHandler) -> None:
        """Enqueue all objects of the controller when the server begins to serve an optional kind."""
        await self.wait_for_cache_sync()
        if informer.is_missing:
            await informer.synced.wait()
            for entry in self._listers[self.controller.triggers[0].name].entries():
                for request in handler.resync(entry):
                    self._filter.add(request)

    async def _run_resync(self, interval: float, lister: Lister[Any], handler: TriggerHandler) -> None:
        """Map all objects of a trigger at an interval. The first resync is one interval after the first list."""
        for informer in lister.informers:
            await informer.synced.wait()
        while True:
            await asyncio.sleep(interval)
            for number, entry in enumerate(lister.entries(), start=1):
                for request in handler.resync(entry):
                    self._filter.add(request)
                if not number % _RESYNC_BATCH:
                    await asyncio.sleep(0)

    async def _run_timer(self, timer: Timer) -> None:
        async for key, reason in timer.ticks():
            self._filter.add_key(key, reason, priority=Priority.LOW)


def _is_synced_or_missing(informer: Informer) -> bool:
    return informer.synced.is_set() or informer.is_missing
