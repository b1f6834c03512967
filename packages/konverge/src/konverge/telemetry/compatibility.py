"""The same numbers under the names of controller-runtime and client-go, for dashboards that exist.

Nothing is counted twice: the twins are made when somebody scrapes, of what is counted under our own names. What those
projects have and we do not (panics, webhooks, priorities) is not made up.
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
    "conflict": "requeue",  # tried again at once, and no error
    "error": "error",
    "terminal": "error",
}
"""Our outcomes in their words; a reconcile that was refused because the lease is lost has none."""

_METHODS: Final = {
    "create": "POST",
    "evict": "POST",
    "delete": "DELETE",
    "apply": "PATCH",
    "patch": "PATCH",
    "scale": "PATCH",
    "update": "PATCH",  # of an untyped object it is a PUT; an record does not say
}


class Counted(Protocol):
    """What is counted under our own names."""

    results: Counter
    durations: Histogram
    waits: Histogram


class CompatibilityMetrics:
    """Makes the twins of what is counted and read."""

    def __init__(
        self, counted: Counted, readings: MetricsCollector, *, requests: RequestMetrics | None = None, host: str = ""
    ) -> None:
        self._counted = counted
        self._readings = readings
        self._requests = requests
        self._host = host

    def collect(self) -> Iterator[Metric]:
        """Give all of them."""
        yield from self._of_results()
        durations, waits = self._counted.durations, self._counted.waits
        yield _renamed(durations, "controller_runtime_reconcile_time_seconds", named=False)
        yield _renamed(durations, "workqueue_work_duration_seconds", named=True)
        yield _renamed(waits, "workqueue_queue_duration_seconds", named=True)
        yield from _of_controllers(self._readings.controllers())
        leases = [((lease.name,), float(lease.held)) for lease in self._readings.leases()]
        yield gauge("leader_election_master_status", "1 for the leader, 0 for others", ("name",), leases)
        if self._requests is not None:
            yield self._of_requests(self._requests)

    def _of_results(self) -> Iterator[Metric]:
        ended: dict[tuple[str, str], float] = {}
        terminal: dict[tuple[str], float] = {}
        for sample in _samples(self._counted.results, "_total"):
            controller, result = sample.labels["controller"], sample.labels["result"]
            for word in dict.fromkeys(_RESULTS.values()):
                ended.setdefault((controller, word), 0.0)
            if result in _RESULTS:
                ended[controller, _RESULTS[result]] += sample.value
            terminal[controller,] = terminal.get((controller,), 0.0) + (sample.value if result == "terminal" else 0.0)
        errors = [((name,), value) for (name, word), value in ended.items() if word == "error"]
        own, prefix = ("controller",), "controller_runtime"
        yield counter(f"{prefix}_reconcile", "Reconciles by result", ("controller", "result"), ended.items())
        yield counter(f"{prefix}_reconcile_errors", "Reconciles that failed", own, errors)
        yield counter(f"{prefix}_terminal_reconcile_errors", "Those not retried", own, terminal.items())

    def _of_requests(self, requests: RequestMetrics) -> Metric:
        sums: dict[tuple[str, str, str], float] = {}
        for sample in _samples(requests.requests, "_total"):
            method = _METHODS.get(sample.labels["verb"].split(" ")[0], "GET")
            place = (sample.labels["code"], method, self._host)
            sums[place] = sums.get(place, 0.0) + sample.value
        return counter("rest_client_requests", "Requests by code and method", ("code", "method", "host"), sums.items())


def _of_controllers(found: list[ControllerSnapshot]) -> Iterator[Metric]:
    own, both = ("controller",), ("controller", "name")
    prefix = "controller_runtime"
    yield gauge(f"{prefix}_active_workers", "Workers that reconcile", own, [((c.name,), c.busy) for c in found])
    yield gauge(
        f"{prefix}_max_concurrent_reconciles", "Workers there are", own, [((c.name,), c.workers) for c in found]
    )
    yield counter("workqueue_adds", "Keys put in line", both, [((c.name, c.name), c.adds) for c in found])
    yield counter("workqueue_retries", "Keys that backed off", both, [((c.name, c.name), c.retries) for c in found])
    yield gauge(
        "workqueue_longest_running_processor_seconds",
        "How long the longest reconcile has been running",
        both,
        [((c.name, c.name), c.longest_running) for c in found],
    )
    yield gauge(
        "workqueue_unfinished_work_seconds",
        "How long all running reconciles have been running, added up",
        both,
        [((c.name, c.name), c.unfinished) for c in found],
    )


def _samples(metric: Counter | Histogram, ending: str) -> Iterator[Any]:
    for family in metric.collect():
        yield from (sample for sample in family.samples if sample.name.endswith(ending))


def _renamed(histogram: Histogram, name: str, *, named: bool) -> Metric:
    """Give a histogram under another name; `named` adds the controller as `name` too."""
    from prometheus_client import Metric

    (source,) = histogram.collect()
    twin = Metric(name, source.documentation, "histogram")
    for sample in source.samples:
        labels = {**sample.labels, "name": sample.labels["controller"]} if named else sample.labels
        twin.add_sample(name + sample.name.removeprefix(source.name), labels, sample.value)
    return twin
