"""Metrics of controllers. Reconciles are counted as they end; queues, caches and leases are read at each scrape.

| name | labels | |
|---|---|---|
| reconcile_total | controller, result | reconciles by result |
| reconcile_errors_total | controller | failed reconciles |
| reconcile_duration_seconds | controller | histogram |
| workqueue_depth | controller, name | ready keys |
| konverge_queue_wait_seconds | controller | histogram: how long keys waited in the queue |
| konverge_generation_latency_seconds | controller | histogram: from a new generation to the status that observes it |
| konverge_hot_loop_reconciles_total | controller | reconciles that rewrite an object although nothing changed |
| konverge_queue_*, konverge_cache_*, konverge_watch_*, konverge_reflector_* | | see `collector` |
| konverge_events_*, konverge_leader | | see `collector` |

With `compatible` the same numbers also have the names that controller-runtime uses (see `compatibility`), so that
existing dashboards work. Names of objects are never labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from konverge.telemetry.collector import MetricsCollector
from konverge.telemetry.compatibility import CompatibilityMetrics
from konverge.telemetry.requests import RequestMetrics
from konverge.telemetry.snapshots import SnapshotSources

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric
    from prometheus_client.metrics import Counter, Histogram

__all__ = ["ControllerMetrics"]

_ERRORS = frozenset({"error", "retry", "terminal"})

# Fine for the usual durations of reconciles, coarse up to the longest deadlines.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class _Reconcile(Protocol):
    @property
    def controller(self) -> str: ...
    @property
    def queue_wait(self) -> float: ...
    @property
    def warning(self) -> str: ...
    @property
    def generation_latencies(self) -> Sequence[float]: ...


class _End(Protocol):
    @property
    def outcome(self) -> str: ...
    @property
    def seconds(self) -> float: ...


class ControllerMetrics:
    """The metrics of all controllers of a process; `begin` and `end` are called for each reconcile.

    Promises: counting a reconcile costs a few microseconds. A source that fails during a scrape loses only its own
    numbers, and is counted in `konverge_collect_failures_total`.

    `compatible` adds the names of controller-runtime; `requests` and `host` are for its request metrics.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        sources: SnapshotSources | None = None,
        *,
        compatible: bool = True,
        requests: RequestMetrics | None = None,
        host: str = "",
    ) -> None:
        from prometheus_client import Counter, Histogram

        label = ["controller"]
        self.results = Counter("reconcile_total", "Reconciles by result", ["controller", "result"], registry=registry)
        self.errors = Counter("reconcile_errors_total", "Failed reconciles", label, registry=registry)
        self.durations = _histogram(Histogram, registry, "reconcile_duration_seconds", "Duration of reconciles")
        self.waits = _histogram(
            Histogram, registry, "konverge_queue_wait_seconds", "Time that keys waited in the queue"
        )
        self.generation_latencies = _histogram(
            Histogram,
            registry,
            "konverge_generation_latency_seconds",
            "Time from a new generation to the status that observes it",
        )
        self.hot_loops = Counter(
            "konverge_hot_loop_reconciles_total",
            "Reconciles that rewrote an object although nothing changed",
            label,
            registry=registry,
        )
        self._bound: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        self._bound_waits: dict[str, Histogram] = {}
        self._collector = MetricsCollector(sources or SnapshotSources())
        self._compatibility = (
            CompatibilityMetrics(self, self._collector, requests=requests, host=host) if compatible else None
        )
        registry.register(self)

    def begin(self, reconcile: _Reconcile) -> None:
        """Record how long the key of a reconcile waited in the queue."""
        bound = self._bound_waits.get(reconcile.controller)
        if bound is None:
            bound = self._bound_waits[reconcile.controller] = self.waits.labels(reconcile.controller)
        bound.observe(reconcile.queue_wait)

    def end(self, reconcile: _Reconcile, end: _End) -> None:
        """Count a reconcile by its outcome, and record its duration."""
        controller, outcome = reconcile.controller, end.outcome
        bound = self._bound.get((controller, outcome))
        if bound is None:
            # These counters exist from the first reconcile on, so that a rate over them is 0 and not absent.
            self.errors.labels(controller)
            self.hot_loops.labels(controller)
            bound = self.results.labels(controller, str(outcome)), self.durations.labels(controller)
            self._bound[controller, outcome] = bound
        counter, histogram = bound
        counter.inc()
        histogram.observe(end.seconds)
        if outcome in _ERRORS:
            self.errors.labels(controller).inc()
        if reconcile.warning:
            self.hot_loops.labels(controller).inc()
        for seconds in reconcile.generation_latencies:
            self.generation_latencies.labels(controller).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that are read at each scrape. The others are registered by themselves."""
        yield from self._collector.collect()
        if self._compatibility is not None:
            yield from self._compatibility.collect()

    def describe(self) -> Iterator[Metric]:
        """Return nothing: otherwise the registry would scrape to find the names."""
        return iter(())


def _histogram(cls: type[Histogram], registry: CollectorRegistry, name: str, text: str) -> Histogram:
    return cls(name, text, ["controller"], buckets=_BUCKETS, registry=registry)
