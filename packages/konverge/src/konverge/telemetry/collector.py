"""Metrics that are read at each scrape: queues, caches, leases and events, from their snapshots."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from konverge.telemetry.snapshots import (
    CacheSnapshot,
    ControllerSnapshot,
    EventSnapshot,
    LeaseSnapshot,
    SnapshotSources,
)

if TYPE_CHECKING:
    from prometheus_client import Metric

__all__ = ["MetricsCollector", "counter", "gauge"]

_log = logging.getLogger("konverge.telemetry")

T = TypeVar("T")

Samples = Iterable[tuple[tuple[str, ...], float]]

_STATES = ("idle", "listing", "opening", "watching", "waiting", "stopped")
_ATTEMPTS = 3


class MetricsCollector:
    """Read the sources and convert their snapshots to metrics. A source that fails is left out, and counted."""

    def __init__(self, sources: SnapshotSources) -> None:
        self._sources = sources
        self._failures = 0

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all sources."""
        yield from _controller_metrics(self.controllers())
        yield from _cache_metrics(self._read(self._sources.caches))
        yield from _lease_metrics(self.leases())
        yield from _event_metrics(self._call(self._sources.events, None))
        yield counter("konverge_collect_failures", "Snapshots that could not be read", (), [((), self._failures)])

    def controllers(self) -> list[ControllerSnapshot]:
        """Return the snapshots of the controllers."""
        return self._read(self._sources.controllers)

    def leases(self) -> list[LeaseSnapshot]:
        """Return the snapshots of the leases."""
        return self._read(self._sources.leases)

    def _read(self, source: Callable[[], Iterable[T]]) -> list[T]:
        return self._call(lambda: list(source()), [])

    def _call(self, source: Callable[[], T], default: T) -> T:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return source()
            except RuntimeError:
                # Another thread changed the size of a dict during the iteration: try again.
                if attempt == _ATTEMPTS:
                    self._fail()
            except Exception:
                self._fail()
                break
        return default

    def _fail(self) -> None:
        self._failures += 1
        _log.debug("metrics snapshot failed", exc_info=True)


def gauge(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    """Return a gauge with these samples."""
    from prometheus_client.core import GaugeMetricFamily

    return _with_samples(GaugeMetricFamily(name, text, labels=labels), samples)


def counter(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    """Return a counter with these samples; the name is without `_total`."""
    from prometheus_client.core import CounterMetricFamily

    return _with_samples(CounterMetricFamily(name, text, labels=labels), samples)


def _with_samples(family: Any, samples: Samples) -> Metric:
    for labels, value in samples:
        family.add_metric(labels, value)
    metric: Metric = family
    return metric


def _controller_metrics(found: list[ControllerSnapshot]) -> Iterator[Metric]:
    labels = ("controller",)
    # Both labels, since controller-runtime labels the queue with `name`: one metric serves either.
    yield gauge("workqueue_depth", "Ready keys", ("controller", "name"), [((c.name, c.name), c.ready) for c in found])
    yield from _declared_metrics(found)
    yield gauge(
        "konverge_longest_running_reconcile_seconds",
        "Duration of the longest active reconcile",
        labels,
        [((c.name,), c.longest_running) for c in found],
    )
    yield gauge(
        "konverge_unfinished_work_seconds",
        "Sum of the durations of all active reconciles",
        labels,
        [((c.name,), c.unfinished) for c in found],
    )
    yield gauge("konverge_active_workers", "Active workers", labels, [((c.name,), c.active_workers) for c in found])
    yield gauge("konverge_workers", "Maximum concurrent reconciles", labels, [((c.name,), c.workers) for c in found])


def _declared_metrics(found: list[ControllerSnapshot]) -> Iterator[Metric]:
    """Yield the metrics that components declare beside their numbers, one family for all controllers."""
    samples: dict[tuple[str, str, str], list[tuple[tuple[str, ...], float]]] = {}
    for controller in found:
        for one in controller.metrics:
            samples.setdefault((one.kind, one.name, one.text), []).append(((controller.name,), one.value))
    for (kind, name, text), values in samples.items():
        yield (counter if kind == "counter" else gauge)(name, text, ("controller",), values)


def _cache_metrics(found: list[CacheSnapshot]) -> Iterator[Metric]:
    labels = ("kind", "namespace")

    def total(value: Callable[[CacheSnapshot], float]) -> Samples:
        # Collections of the same kind and namespace (with different selectors) share one sample: duplicate labels are
        # an error.
        sums: dict[tuple[str, str], float] = {}
        for one in found:
            values = (one.kind, one.namespace)
            sums[values] = sums.get(values, 0.0) + value(one)
        return sums.items()

    def maximum(value: Callable[[CacheSnapshot], float]) -> Samples:
        largest: dict[tuple[str, str], float] = {}
        for one in found:
            values = (one.kind, one.namespace)
            largest[values] = max(largest.get(values, 0.0), value(one))
        return largest.items()

    yield gauge("konverge_cache_objects", "Objects in the cache", labels, total(lambda c: c.objects))
    yield gauge("konverge_cache_bytes", "Bytes of objects in the cache", labels, total(lambda c: c.bytes))
    yield gauge(
        "konverge_cache_not_synced", "Collections before their first list", labels, total(lambda c: not c.synced)
    )
    yield gauge(
        "konverge_watch_idle_seconds", "Time since the server last sent data", labels, maximum(lambda c: c.idle)
    )
    yield counter("konverge_reflector_watches", "Watches opened", labels, total(lambda c: c.watches))
    yield counter("konverge_reflector_lists", "Lists started", labels, total(lambda c: c.lists))
    yield counter("konverge_reflector_failures", "Failed lists and watches", labels, total(lambda c: c.failures))
    states: dict[tuple[str, str, str], float] = {}
    for one in found:
        for state in dict.fromkeys((*_STATES, one.state)):
            values = (one.kind, one.namespace, state)
            states[values] = states.get(values, 0.0) + (state == one.state)
    yield gauge("konverge_reflector_state", "State of each reflector", (*labels, "state"), states.items())


def _lease_metrics(found: list[LeaseSnapshot]) -> Iterator[Metric]:
    samples = [((lease.name,), float(lease.is_leader)) for lease in found]
    yield gauge("konverge_leader", "Whether this process is the leader", ("lease",), samples)


def _event_metrics(found: EventSnapshot | None) -> Iterator[Metric]:
    if found is None:
        return
    yield counter("konverge_events_written", "Events written to the server", (), [((), found.written)])
    dropped = [((reason,), count) for reason, count in found.dropped.items()]
    yield counter("konverge_events_dropped", "Events that were dropped", ("reason",), dropped)
