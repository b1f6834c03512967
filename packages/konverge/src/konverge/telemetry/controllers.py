"""Metrics of controllers: what they do is counted as it happens, how they stand is read when somebody scrapes.

| name | labels | |
|---|---|---|
| reconcile_total | controller, result | how reconciles ended |
| reconcile_errors_total | controller | those that ended with an error |
| reconcile_duration_seconds | controller | histogram |
| workqueue_depth | controller, name | keys in line |
| konverge_queue_wait_seconds | controller | histogram: how long keys were in line |
| konverge_generation_latency_seconds | controller | histogram: from a new generation to the status that observes it |
| konverge_hot_loop_reconciles_total | controller | reconciles that rewrite an object although nothing changed |
| konverge_queue_*, konverge_cache_*, konverge_watch_*, konverge_events_*, konverge_leader | | see `readings` |

With `compatible` the names that controller-runtime uses are there too, made of the same numbers at scrape time (see
`twins`), so that existing dashboards work. Names of objects are never labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from konverge.telemetry.collector import MetricsCollector
from konverge.telemetry.compatibility import CompatibilityMetrics
from konverge.telemetry.requests import RequestMetrics
from konverge.telemetry.snapshots import Sources

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric
    from prometheus_client.metrics import Counter, Histogram

__all__ = ["ControllerMetrics"]

_ERRORS = frozenset({"error", "terminal"})

# Fine where reconciles usually are, coarse up to the longest deadlines.
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class ControllerMetrics:
    """The metrics of all controllers of a process.

    Promises: counting one reconcile costs a few microseconds; a source that fails when somebody scrapes costs its own
    numbers only, and is counted in `konverge_collect_failures_total`.

    `compatible` adds controller-runtime's names; `requests` and `host` give those of its requests.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        sources: Sources | None = None,
        *,
        compatible: bool = True,
        requests: RequestMetrics | None = None,
        host: str = "",
    ) -> None:
        from prometheus_client import Counter, Histogram

        label = ["controller"]
        self.results = Counter("reconcile_total", "How reconciles ended", ["controller", "result"], registry=registry)
        self.errors = Counter("reconcile_errors_total", "Reconciles that failed", label, registry=registry)
        self.durations = _histogram(Histogram, registry, "reconcile_duration_seconds", "How long reconciles took")
        self.waits = _histogram(Histogram, registry, "konverge_queue_wait_seconds", "How long keys were in line")
        self.lags = _histogram(
            Histogram,
            registry,
            "konverge_generation_latency_seconds",
            "From a new generation to the status that observes it",
        )
        self.restless_runs = Counter(
            "konverge_hot_loop_reconciles_total",
            "Runs that wrote the same object as many before, with nothing new to do",
            label,
            registry=registry,
        )
        self._bound: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        self._bound_waits: dict[str, Histogram] = {}
        self._readings = MetricsCollector(sources or Sources())
        self._twins = CompatibilityMetrics(self, self._readings, requests=requests, host=host) if compatible else None
        registry.register(self)

    def told(self, controller: str, outcome: str, seconds: float) -> None:
        """Count a reconcile that ended so, after so many seconds."""
        bound = self._bound.get((controller, outcome))
        if bound is None:
            # These counters are there from the first reconcile on, so that a rate over them is 0 and not nothing.
            self.errors.labels(controller)
            self.restless_runs.labels(controller)
            bound = self.results.labels(controller, str(outcome)), self.durations.labels(controller)
            self._bound[controller, outcome] = bound
        counter, histogram = bound
        counter.inc()
        histogram.observe(seconds)
        if outcome in _ERRORS:
            self.errors.labels(controller).inc()

    def waited(self, controller: str, seconds: float) -> None:
        """Count how long a key was in line."""
        bound = self._bound_waits.get(controller)
        if bound is None:
            bound = self._bound_waits[controller] = self.waits.labels(controller)
        bound.observe(seconds)

    def observed_generation(self, controller: str, seconds: float) -> None:
        """Count how long it took from a new generation to the status that observes it."""
        self.lags.labels(controller).observe(seconds)

    def restless(self, controller: str) -> None:
        """Count a run that wrote once more what many before it had written."""
        self.restless_runs.labels(controller).inc()

    def collect(self) -> Iterator[Metric]:
        """Give what is read at scrape time; what is counted is in the registry by itself."""
        yield from self._readings.collect()
        if self._twins is not None:
            yield from self._twins.collect()

    def describe(self) -> Iterator[Metric]:
        """Give nothing: the registry would scrape to learn the names."""
        return iter(())


def _histogram(made_by: type[Histogram], registry: CollectorRegistry, name: str, text: str) -> Histogram:
    return made_by(name, text, ["controller"], buckets=_SECONDS, registry=registry)
