"""Compatibility metrics: the same numbers under the names of controller-runtime and client-go, for their dashboards.

Nothing is counted twice: these metrics are made at each scrape, from the numbers under konverge's own names. Metrics of
those projects that konverge has no numbers for (panics, webhooks, priorities) are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from konverge.telemetry.collector import MetricsCollector, counter, gauge
from konverge.telemetry.requests import RequestMetrics
from konverge.telemetry.snapshots import ControllerSnapshot

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.metrics import Counter, Histogram

__all__ = ["CompatibilityMetrics"]

_RESULTS: Final = {
    "success": "success",
    "requeue": "requeue",
    "requeue_after": "requeue_after",
    "conflict": "requeue",  # requeued at once, and not an error
    "retry": "error",  # a Retry, which controller-runtime has not: its reconcilers return an error or a result
    "error": "error",
    "terminal": "error",
}
"""The results of konverge and their names in controller-runtime, which has none for a write refused without a lease."""

_METHODS: Final = {
    "create": "POST",
    "evict": "POST",
    "delete": "DELETE",
    "apply": "PATCH",
    "patch": "PATCH",
    "scale": "PATCH",
    "update": "PATCH",  # a PUT for an unstructured object, but a record does not say which it was
}


class ReconcileMetrics(Protocol):
    """The metrics that are counted under konverge's own names."""

    results: Counter
    durations: Histogram
    waits: Histogram


class CompatibilityMetrics:
    """Convert konverge's metrics to those of controller-runtime and client-go."""

    def __init__(
        self,
        metrics: ReconcileMetrics,
        collector: MetricsCollector,
        *,
        requests: RequestMetrics | None = None,
        host: str = "",
    ) -> None:
        self._metrics = metrics
        self._collector = collector
        self._requests = requests
        self._host = host

    def collect(self) -> Iterator[Metric]:
        """Yield all compatibility metrics."""
        yield from self._result_metrics()
        durations, waits = self._metrics.durations, self._metrics.waits
        yield _renamed(durations, "controller_runtime_reconcile_time_seconds", with_name=False)
        yield _renamed(durations, "workqueue_work_duration_seconds", with_name=True)
        yield _renamed(waits, "workqueue_queue_duration_seconds", with_name=True)
        yield from _controller_metrics(self._collector.controllers())
        leases = [((lease.name,), float(lease.is_leader)) for lease in self._collector.leases()]
        yield gauge("leader_election_master_status", "1 for the leader, 0 for others", ("name",), leases)
        if self._requests is not None:
            yield self._request_metric(self._requests)

    def _result_metrics(self) -> Iterator[Metric]:
        results: dict[tuple[str, str], float] = {}
        terminal: dict[tuple[str], float] = {}
        for sample in _samples(self._metrics.results, "_total"):
            controller, result = sample.labels["controller"], sample.labels["result"]
            for name in dict.fromkeys(_RESULTS.values()):
                results.setdefault((controller, name), 0.0)
            if result in _RESULTS:
                results[controller, _RESULTS[result]] += sample.value
            terminal[controller,] = terminal.get((controller,), 0.0) + (sample.value if result == "terminal" else 0.0)
        errors = [((controller,), value) for (controller, name), value in results.items() if name == "error"]
        labels, prefix = ("controller",), "controller_runtime"
        yield counter(f"{prefix}_reconcile", "Reconciles by result", ("controller", "result"), results.items())
        yield counter(f"{prefix}_reconcile_errors", "Failed reconciles", labels, errors)
        yield counter(
            f"{prefix}_terminal_reconcile_errors", "Failed reconciles that are not retried", labels, terminal.items()
        )

    def _request_metric(self, requests: RequestMetrics) -> Metric:
        sums: dict[tuple[str, str, str], float] = {}
        for sample in _samples(requests.requests, "_total"):
            method = _METHODS.get(sample.labels["verb"].split(" ")[0], "GET")
            labels = (sample.labels["code"], method, self._host)
            sums[labels] = sums.get(labels, 0.0) + sample.value
        return counter("rest_client_requests", "Requests by code and method", ("code", "method", "host"), sums.items())


def _controller_metrics(found: list[ControllerSnapshot]) -> Iterator[Metric]:
    labels, both = ("controller",), ("controller", "name")
    prefix = "controller_runtime"
    yield gauge(f"{prefix}_active_workers", "Active workers", labels, [((c.name,), c.active_workers) for c in found])
    yield gauge(
        f"{prefix}_max_concurrent_reconciles",
        "Maximum concurrent reconciles",
        labels,
        [((c.name,), c.workers) for c in found],
    )
    yield counter("workqueue_adds", "Keys added to the queue", both, [((c.name, c.name), c.adds) for c in found])
    yield counter(
        "workqueue_retries", "Keys requeued with backoff", both, [((c.name, c.name), c.retries) for c in found]
    )
    yield gauge(
        "workqueue_longest_running_processor_seconds",
        "Duration of the longest active reconcile",
        both,
        [((c.name, c.name), c.longest_running) for c in found],
    )
    yield gauge(
        "workqueue_unfinished_work_seconds",
        "Sum of the durations of all active reconciles",
        both,
        [((c.name, c.name), c.unfinished) for c in found],
    )


def _samples(metric: Counter | Histogram, suffix: str) -> Iterator[Any]:
    for family in metric.collect():
        yield from (sample for sample in family.samples if sample.name.endswith(suffix))


def _renamed(histogram: Histogram, name: str, *, with_name: bool) -> Metric:
    """Return a histogram under another name; `with_name` adds the controller as the label `name`."""
    from prometheus_client import Metric

    (source,) = histogram.collect()
    metric = Metric(name, source.documentation, "histogram")
    for sample in source.samples:
        labels = {**sample.labels, "name": sample.labels["controller"]} if with_name else sample.labels
        metric.add_sample(name + sample.name.removeprefix(source.name), labels, sample.value)
    return metric
