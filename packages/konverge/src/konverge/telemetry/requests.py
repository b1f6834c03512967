"""Records of API requests: one for each attempt, passed to the observers of a client.

An observer is a callable that takes a `RequestRecord`. It is called once for each attempt, when the result is known.
This module has three: a log line, metrics and spans. A record holds no body, header, query or credential, so that no
secret can reach a log, a metric or a trace.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer
    from prometheus_client import CollectorRegistry, Counter, Histogram

__all__ = ["RequestMetrics", "RequestRecord", "RequestSpans", "log_request"]

_log = logging.getLogger("konverge.client")


class RequestRecord(Struct, frozen=True):
    """One attempt of a request: its verb, its object and its result.

    `status` is the HTTP status code, or 0 if there was no response; `error` then names the class of the error, and
    `cancelled` is True if the caller was cancelled. The record of a stream ends with the headers of the response.
    """

    verb: str
    kind: str
    key: str
    status: int
    started: float  # wall clock, seconds since the epoch
    duration: float
    attempt: int
    error: str = ""
    cancelled: bool = False


def log_request(record: RequestRecord) -> None:
    """Log a request at debug level, with the facts as fields."""
    if _log.isEnabledFor(logging.DEBUG):
        facts = {
            "verb": record.verb,
            "kind": record.kind,
            "key": record.key,
            "status": record.status,
            "duration": record.duration,
            "attempt": record.attempt,
            "error": record.error,
        }
        _log.debug("API request", extra=facts)


class RequestMetrics:
    """Count and time requests: `konverge_client_requests_total` and `konverge_client_request_duration_seconds`.

    The labels are verb, kind and code ("<error>" if there was no response). All have few values; names of objects are
    never labels.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter, Histogram

        self.requests = Counter(
            "konverge_client_requests_total", "Requests to the API server", ["verb", "kind", "code"], registry=registry
        )
        self._duration = Histogram(
            "konverge_client_request_duration_seconds", "Time to the response", ["verb", "kind"], registry=registry
        )
        # `labels` costs several times as much as the increment, so its results are cached.
        self._series: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def __call__(self, record: RequestRecord) -> None:
        labels = (record.verb, record.kind, record.status)
        if labels not in self._series:
            code = str(record.status) if record.status else "<error>"
            counter = self.requests.labels(record.verb, record.kind, code)
            self._series[labels] = counter, self._duration.labels(record.verb, record.kind)
        counter, histogram = self._series[labels]
        counter.inc()
        histogram.observe(record.duration)


class RequestSpans:
    """Create an OpenTelemetry span for each request, as a child of the span that is current when the request ends."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def __call__(self, record: RequestRecord) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        begin = int(record.started * 1e9)
        span = self._tracer.start_span(
            f"{record.verb} {record.kind}",
            kind=SpanKind.CLIENT,
            start_time=begin,
            attributes={
                "k8s.verb": record.verb,
                "k8s.kind": record.kind,
                "k8s.key": record.key,
                "http.response.status_code": record.status,
                "konverge.attempt": record.attempt,
            },
        )
        if record.error:
            span.set_status(Status(StatusCode.ERROR, record.error))
        span.end(end_time=begin + int(record.duration * 1e9))
