"""Health checks and metrics of one process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from konverge.manager.health import Check, Health
from konverge.manager.heartbeat import LoopMonitor
from konverge.reconcile import ReconcileObserver
from konverge.telemetry import (
    CacheSnapshot,
    ControllerMetrics,
    ControllerSnapshot,
    EventSnapshot,
    LeaseSnapshot,
    MetricValue,
    RequestMetrics,
    SnapshotSources,
)

if TYPE_CHECKING:
    from konverge.manager.running_manager import RunningManager

__all__ = ["Monitoring"]

_WATCH_ERROR_GRACE = 10.0
"""Seconds that a watch may fail before the readiness check fails: the restart of an API server is no reason for it."""


class _ReconcileMetrics(ControllerMetrics, ReconcileObserver):
    """The metrics of controllers, as an observer of their reconciles."""


class Monitoring:
    """The health checks and metrics of a running manager. They run in the lease thread, so they only read state."""

    def __init__(self, manager: RunningManager) -> None:
        from prometheus_client import CollectorRegistry

        self._manager = manager
        self.registry = CollectorRegistry()
        self.requests = RequestMetrics(self.registry)
        sources = SnapshotSources(
            controllers=self._controller_snapshots,
            caches=self._cache_snapshots,
            leases=self._lease_snapshots,
            events=self._event_snapshot,
        )
        self.controllers = _ReconcileMetrics(self.registry, sources, requests=self.requests)
        self.loop_monitor: LoopMonitor | None = None
        self.health = Health(
            Check("start", self._check_start),
            Check("caches", self._check_caches),
            Check("webhooks", self._check_webhooks),
            Check("lease", self._check_lease),
            Check("loop", self._check_loop, live=True),
        )

    def _check_start(self) -> str:
        return f"starting: {self._manager.stage}" if self._manager.stage else ""

    def _check_caches(self) -> str:
        """Name each collection that is not synced, or whose watch has failed or been behind for a while."""
        cache = self._manager.cache
        if cache is None:
            return "not started"
        reasons = []
        for informer in cache.stats().informers:
            reflector = informer.reflector
            collection = f"{informer.kind.kind} in {informer.namespace}" if informer.namespace else informer.kind.kind
            if informer.not_synced_reason:
                reasons.append(f"{collection}: {informer.not_synced_reason}")
            elif reflector.error is not None and (reflector.error_age or 0.0) > _WATCH_ERROR_GRACE:
                reasons.append(f"{collection}: {reflector.error}")
            elif (informer.stale_for or 0.0) > _WATCH_ERROR_GRACE:
                version = informer.store.version
                reasons.append(
                    f"{collection}: the watch delivers nothing after version {version}, and newer ones exist"
                )
        return "; ".join(reasons)

    def _check_webhooks(self) -> str:
        webhooks = self._manager.webhooks
        return webhooks.not_ready_reason if webhooks is not None else ""

    def _check_lease(self) -> str:
        return self._manager.leader_elections.not_ready_reason()

    def _check_loop(self) -> str:
        return self.loop_monitor.not_live_reason() if self.loop_monitor is not None else ""

    # For metrics

    def _controller_snapshots(self) -> Iterator[ControllerSnapshot]:
        for stats in (running.stats() for running in self._manager.controllers):
            queue = stats.queue
            yield ControllerSnapshot(
                name=stats.name,
                workers=stats.workers,
                active_workers=stats.active_workers,
                ready=queue.ready,
                adds=queue.adds,
                retries=queue.retries,
                longest_running=stats.longest_running,
                unfinished=stats.unfinished,
                metrics=MetricValue.all_of(queue),
            )

    def _cache_snapshots(self) -> Iterator[CacheSnapshot]:
        cache = self._manager.cache
        for informer in cache.stats().informers if cache is not None else ():
            reflector = informer.reflector
            yield CacheSnapshot(
                kind=str(informer.kind),
                namespace=informer.namespace,
                state=reflector.state,
                synced=reflector.synced,
                objects=informer.store.objects,
                bytes=informer.store.bytes,
                idle=reflector.idle_time,
                watches=reflector.watches,
                lists=reflector.lists,
                failures=reflector.failures,
            )

    def _lease_snapshots(self) -> Iterator[LeaseSnapshot]:
        for runner in self._manager.leader_elections:
            yield LeaseSnapshot(name=runner.election.name, is_leader=runner.leading.is_set())

    def _event_snapshot(self) -> EventSnapshot | None:
        recorder = self._manager.recorder
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
