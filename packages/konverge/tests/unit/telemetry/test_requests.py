from __future__ import annotations

import logging

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from konverge.telemetry import RequestMetrics, RequestRecord, RequestSpans, log_request

GOOD = RequestRecord("get", "Lamp", "shop/a", 200, started=1000.0, duration=0.25, attempt=1)
BAD = RequestRecord("apply", "Lamp", "shop/a", 0, started=1000.0, duration=0.5, attempt=2, error="TransportError")


def test_a_log_line_has_constant_words_and_facts_as_fields(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "konverge.client"):
        log_request(BAD)
    (record,) = caplog.records
    assert record.getMessage() == "API request"
    facts = {name: getattr(record, name) for name in ("verb", "kind", "key", "status", "attempt", "error")}
    assert facts == {
        "verb": "apply",
        "kind": "Lamp",
        "key": "shop/a",
        "status": 0,
        "attempt": 2,
        "error": "TransportError",
    }


def test_metrics_count_by_verb_kind_and_code() -> None:
    registry = CollectorRegistry()
    observe = RequestMetrics(registry)
    for record in (GOOD, GOOD, BAD):
        observe(record)
    count = "konverge_client_requests_total"
    assert registry.get_sample_value(count, {"verb": "get", "kind": "Lamp", "code": "200"}) == 2
    assert registry.get_sample_value(count, {"verb": "apply", "kind": "Lamp", "code": "<error>"}) == 1
    seconds = "konverge_client_request_duration_seconds_sum"
    assert registry.get_sample_value(seconds, {"verb": "get", "kind": "Lamp"}) == 0.5


def test_a_request_becomes_a_span() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    observe = RequestSpans(provider.get_tracer("test"))
    observe(GOOD)
    observe(BAD)
    good, bad = exporter.get_finished_spans()
    assert (good.name, good.start_time, good.end_time) == ("get Lamp", 1000 * 10**9, 1000 * 10**9 + 250_000_000)
    assert good.status.is_ok
    assert bad.attributes is not None
    assert bad.attributes["konverge.attempt"] == 2
    assert not bad.status.is_ok
