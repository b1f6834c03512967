"""What a process says about itself: health, metrics, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from konverge.manager.health import Check, Health
from konverge.manager.heartbeat import LoopWatch
from konverge.telemetry import (
    CacheSnapshot,
    ControllerMetrics,
    ControllerSnapshot,
    EventSnapshot,
    RequestMetrics,
    LeaseSnapshot,
    Sources,
)

if TYPE_CHECKING:
    from konverge.manager.process import Process

__all__ = ["Measures"]

_TROUBLE_AFTER = 10.0
"""So many seconds a watch may fail before readiness says so: a server that restarts is no reason to worry anybody."""


class Measures:
    """The health and the metrics of one process; asked from the side thread, so everything here only looks."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.registry = CollectorRegistry()
        self.requests = RequestMetrics(self.registry)
        sources = Sources(
            controllers=self._controller_figures,
            caches=self._cache_figures,
            leases=self._lease_figures,
            events=self._event_figures,
        )
        self.controllers = ControllerMetrics(self.registry, sources, requests=self.requests)
        self.watch: LoopWatch | None = None
        self.health = Health(
            Check("start", self._start),
            Check("caches", self._caches),
            Check("webhooks", self._webhooks),
            Check("lease", self._lease),
            Check("loop", self._loop, live=True),
        )

    def _start(self) -> str:
        return f"starting: {self._process.stage}" if self._process.stage else ""

    def _caches(self) -> str:
        """Name each collection that is not synced, or that has not been followed for a while."""
        cache = self._process.cache
        if cache is None:
            return "not started"
        reasons = []
        for mirror in cache.stats().mirrors:
            reflector = mirror.reflector
            where = f"{mirror.kind.kind} in {mirror.namespace}" if mirror.namespace else mirror.kind.kind
            if mirror.waits_for:
                reasons.append(f"{where}: {mirror.waits_for}")
            elif reflector.error is not None and (reflector.trouble_age or 0.0) > _TROUBLE_AFTER:
                reasons.append(f"{where}: {reflector.error}")
        return "; ".join(reasons)

    def _webhooks(self) -> str:
        parts = self._process.webhooks
        return parts.trouble if parts is not None else ""

    def _lease(self) -> str:
        return self._process.leaderships.trouble()

    def _loop(self) -> str:
        return self.watch.blocked() if self.watch is not None else ""

    # For metrics

    def _controller_figures(self) -> Iterator[ControllerSnapshot]:
        for stats in (running.stats() for running in self._process.running):
            queue = stats.queue
            yield ControllerSnapshot(
                name=stats.name,
                workers=stats.workers,
                busy=stats.busy,
                ready=queue.ready,
                delayed=queue.delayed,
                adds=queue.adds,
                retries=queue.retries,
                oldest_wait=queue.oldest_wait,
                longest_running=stats.longest_running,
                unfinished=stats.unfinished,
            )

    def _cache_figures(self) -> Iterator[CacheSnapshot]:
        cache = self._process.cache
        for mirror in cache.stats().mirrors if cache is not None else ():
            reflector = mirror.reflector
            yield CacheSnapshot(
                kind=str(mirror.kind),
                namespace=mirror.namespace,
                state=reflector.state,
                synced=reflector.synced,
                objects=mirror.store.objects,
                bytes=mirror.store.bytes,
                silent=reflector.silent,
                watches=reflector.watches,
                lists=reflector.lists,
                failures=reflector.failures,
            )

    def _lease_figures(self) -> Iterator[LeaseSnapshot]:
        for leadership in self._process.leaderships:
            yield LeaseSnapshot(name=leadership.election.name, held=leadership.leading.is_set())

    def _event_figures(self) -> EventSnapshot | None:
        recorder = self._process.recorder
        if recorder is None:
            return None
        stats = recorder.stats()
        dropped = {
            "limit": stats.dropped_limit,
            "queue": stats.dropped_queue,
            "failed": stats.dropped_failed,
            "stopped": stats.dropped_stopped,
        }
        return EventSnapshot(written=stats.written, dropped=dropped)
