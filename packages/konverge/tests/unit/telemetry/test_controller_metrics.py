from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from call_counts import count_calls
from konverge.queue import QueueStats
from konverge.telemetry import (
    CacheSnapshot,
    ControllerMetrics,
    ControllerSnapshot,
    EventSnapshot,
    LeaseSnapshot,
    MetricValue,
    RequestMetrics,
    RequestRecord,
    SnapshotSources,
)

WEB = ControllerSnapshot(
    name="webapp",
    workers=4,
    active_workers=2,
    ready=7,
    adds=100,
    retries=5,
    longest_running=8.0,
    unfinished=9.0,
    metrics=MetricValue.all_of(
        QueueStats(
            name="webapp",
            ready=7,
            delayed=3,
            in_flight=2,
            adds=100,
            gets=93,
            retries=5,
            oldest_wait=1.5,
            longest_running=8.0,
        )
    ),
)
POD = CacheSnapshot(kind="Pod", state="watching", synced=True, objects=10, bytes=5000, idle=2.0, watches=1, lists=1)


def sources() -> SnapshotSources:
    return SnapshotSources(
        controllers=lambda: [WEB],
        caches=lambda: [POD],
        leases=lambda: [LeaseSnapshot(name="webapp", is_leader=True)],
        events=lambda: EventSnapshot(written=3, dropped={"limit": 2, "failed": 1}),
    )


class Reconcile(NamedTuple):
    controller: str = "webapp"
    queue_wait: float = 0.001
    warning: str = ""
    generation_latencies: tuple[float, ...] = ()


class End(NamedTuple):
    outcome: str
    seconds: float


def observe(
    metrics: ControllerMetrics,
    outcome: str,
    seconds: float,
    *,
    queue_wait: float = 0.001,
    warning: str = "",
    generation_latencies: tuple[float, ...] = (),
) -> None:
    """Count one reconcile of the controller webapp."""
    reconcile = Reconcile("webapp", queue_wait, warning, generation_latencies)
    metrics.begin(reconcile)
    metrics.end(reconcile, End(outcome, seconds))


def samples(registry: CollectorRegistry) -> dict[str, float]:
    """Return the samples of a scrape, by "name{label=value,...}"."""
    found = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def test_reconciles_are_counted_by_controller_and_result() -> None:
    registry = CollectorRegistry()
    metrics = ControllerMetrics(registry)
    for outcome in ("success", "success", "error", "terminal", "conflict", "requeue_after"):
        observe(metrics, outcome, 0.02)
    found = samples(registry)
    assert found["reconcile_total{controller=webapp,result=success}"] == 2
    assert found["reconcile_total{controller=webapp,result=conflict}"] == 1
    assert found["reconcile_errors_total{controller=webapp}"] == 2
    assert found["reconcile_duration_seconds_count{controller=webapp}"] == 6
    assert found["reconcile_duration_seconds_sum{controller=webapp}"] == pytest.approx(0.12)


def test_the_error_counter_is_there_before_the_first_error() -> None:
    registry = CollectorRegistry()
    observe(ControllerMetrics(registry), "success", 0.02)
    assert samples(registry)["reconcile_errors_total{controller=webapp}"] == 0


def test_reconciles_of_a_hot_loop_are_counted() -> None:
    registry = CollectorRegistry()
    metrics = ControllerMetrics(registry)
    observe(metrics, "success", 0.02)
    observe(metrics, "success", 0.02, warning="wrote ConfigMap shop/web in 10 reconciles in a row")
    assert samples(registry)["konverge_hot_loop_reconciles_total{controller=webapp}"] == 1


def test_snapshots_are_read_at_each_scrape() -> None:
    depths = iter([7, 9])
    registry = CollectorRegistry()
    ControllerMetrics(
        registry,
        SnapshotSources(controllers=lambda: [ControllerSnapshot(name="webapp", ready=next(depths))]),
        compatible=False,
    )
    assert samples(registry)["workqueue_depth{controller=webapp,name=webapp}"] == 7
    assert samples(registry)["workqueue_depth{controller=webapp,name=webapp}"] == 9


def test_queues_caches_leases_and_events_are_shown() -> None:
    registry = CollectorRegistry()
    metrics = ControllerMetrics(registry, sources(), compatible=False)
    observe(metrics, "success", 0.02, queue_wait=0.5, generation_latencies=(2.0,))
    found = samples(registry)
    expected = {
        "workqueue_depth{controller=webapp,name=webapp}": 7,
        "konverge_queue_delayed{controller=webapp}": 3,
        "konverge_queue_oldest_wait_seconds{controller=webapp}": 1.5,
        "konverge_queue_adds_total{controller=webapp}": 100,
        "konverge_queue_retries_total{controller=webapp}": 5,
        "konverge_queue_wait_seconds_count{controller=webapp}": 1,
        "konverge_generation_latency_seconds_sum{controller=webapp}": 2,
        "konverge_longest_running_reconcile_seconds{controller=webapp}": 8,
        "konverge_unfinished_work_seconds{controller=webapp}": 9,
        "konverge_active_workers{controller=webapp}": 2,
        "konverge_workers{controller=webapp}": 4,
        "konverge_cache_objects{kind=Pod,namespace=}": 10,
        "konverge_cache_bytes{kind=Pod,namespace=}": 5000,
        "konverge_cache_not_synced{kind=Pod,namespace=}": 0,
        "konverge_watch_idle_seconds{kind=Pod,namespace=}": 2,
        "konverge_reflector_state{kind=Pod,namespace=,state=watching}": 1,
        "konverge_reflector_state{kind=Pod,namespace=,state=waiting}": 0,
        "konverge_leader{lease=webapp}": 1,
        "konverge_events_written_total{}": 3,
        "konverge_events_dropped_total{reason=limit}": 2,
        "konverge_collect_failures_total{}": 0,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert not [name for name in found if name.startswith(("controller_runtime", "rest_client", "leader_election"))]


def test_the_compatibility_metrics_have_the_names_of_controller_runtime() -> None:
    registry = CollectorRegistry()
    requests = RequestMetrics(registry)
    metrics = ControllerMetrics(registry, sources(), requests=requests, host="10.0.0.1")
    for outcome in ("success", "error", "terminal", "retry", "conflict", "requeue", "requeue_after", "refused"):
        observe(metrics, outcome, 0.02)
    requests(RequestRecord("apply", "Pod", "a/b", 200, started=1.0, duration=0.1, attempt=1))
    requests(RequestRecord("list", "Pod", "", 200, started=1.0, duration=0.1, attempt=1))
    found = samples(registry)
    expected = {
        "controller_runtime_reconcile_total{controller=webapp,result=success}": 1,
        "controller_runtime_reconcile_total{controller=webapp,result=error}": 3,
        "controller_runtime_reconcile_total{controller=webapp,result=requeue}": 2,
        "controller_runtime_reconcile_total{controller=webapp,result=requeue_after}": 1,
        "controller_runtime_reconcile_errors_total{controller=webapp}": 3,
        "controller_runtime_terminal_reconcile_errors_total{controller=webapp}": 1,
        "controller_runtime_reconcile_time_seconds_count{controller=webapp}": 8,
        "controller_runtime_reconcile_time_seconds_bucket{controller=webapp,le=+Inf}": 8,
        "controller_runtime_active_workers{controller=webapp}": 2,
        "controller_runtime_max_concurrent_reconciles{controller=webapp}": 4,
        "workqueue_depth{controller=webapp,name=webapp}": 7,
        "workqueue_adds_total{controller=webapp,name=webapp}": 100,
        "workqueue_retries_total{controller=webapp,name=webapp}": 5,
        "workqueue_queue_duration_seconds_count{controller=webapp,name=webapp}": 8,
        "workqueue_work_duration_seconds_count{controller=webapp,name=webapp}": 8,
        "workqueue_longest_running_processor_seconds{controller=webapp,name=webapp}": 8,
        "workqueue_unfinished_work_seconds{controller=webapp,name=webapp}": 9,
        "rest_client_requests_total{code=200,host=10.0.0.1,method=PATCH}": 1,
        "rest_client_requests_total{code=200,host=10.0.0.1,method=GET}": 1,
        "leader_election_master_status{name=webapp}": 1,
    }
    assert {name: found.get(name) for name in expected} == expected


def test_both_formats_can_be_written() -> None:
    registry = CollectorRegistry()
    metrics = ControllerMetrics(registry, sources(), requests=RequestMetrics(registry))
    observe(metrics, "success", 0.02)
    text = generate_openmetrics(registry).decode()  # type: ignore[no-untyped-call]
    assert text.endswith("# EOF\n")
    assert "controller_runtime_reconcile_total{" in text


def test_no_name_and_labels_occur_twice() -> None:
    registry = CollectorRegistry()
    same = CacheSnapshot(kind="Pod", state="waiting", objects=1, idle=9.0)
    everything = SnapshotSources(controllers=lambda: [WEB], caches=lambda: [POD, same])
    observe(ControllerMetrics(registry, everything), "success", 1.0)
    lines = [line.rpartition(" ")[0] for line in generate_latest(registry).decode().splitlines() if line[0] != "#"]
    assert len(lines) == len(set(lines))
    found = samples(registry)
    assert found["konverge_cache_objects{kind=Pod,namespace=}"] == 11
    assert found["konverge_watch_idle_seconds{kind=Pod,namespace=}"] == 9
    assert found["konverge_reflector_state{kind=Pod,namespace=,state=waiting}"] == 1


def test_a_source_that_fails_loses_only_its_own_numbers() -> None:
    def broken() -> Iterator[CacheSnapshot]:
        raise ValueError("no cache yet")

    registry = CollectorRegistry()
    ControllerMetrics(registry, SnapshotSources(controllers=lambda: [WEB], caches=broken))
    found = samples(registry)
    assert found["workqueue_depth{controller=webapp,name=webapp}"] == 7
    assert found["konverge_collect_failures_total{}"] == 1


def test_a_dict_that_changes_while_it_is_read_is_read_once_more() -> None:
    changing = iter([True, False])

    def caches() -> list[CacheSnapshot]:
        if next(changing):
            raise RuntimeError("dictionary changed size during iteration")
        return [POD]

    registry = CollectorRegistry()
    ControllerMetrics(registry, SnapshotSources(caches=caches))
    found = samples(registry)
    assert found["konverge_cache_objects{kind=Pod,namespace=}"] == 10
    assert found["konverge_collect_failures_total{}"] == 0


def test_registering_does_not_call_the_sources() -> None:
    calls = []

    def controllers() -> list[ControllerSnapshot]:
        calls.append(1)
        return []

    ControllerMetrics(CollectorRegistry(auto_describe=True), SnapshotSources(controllers=controllers))
    assert not calls


def test_counting_a_reconcile_costs_few_calls() -> None:
    """Of functions of Python, as every reconcile is counted."""
    metrics = ControllerMetrics(CollectorRegistry())
    observe(metrics, "success", 0.02)
    assert count_calls(lambda: observe(metrics, "success", 0.02)) <= 30
