"""Exchanges: one request and its outcome, told to whoever observes the client.

An observer is a callable that takes an `RequestRecord`; it is called when the outcome is known, once for each attempt. Three
are here: a log line, a metric, a span. An record holds no body, header, query or credential, so that no secret can
reach a log, a metric or a trace.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer
    from prometheus_client import CollectorRegistry, Counter, Histogram

__all__ = ["RequestRecord", "RequestMetrics", "RequestSpans", "log_request"]

_log = logging.getLogger("konverge.client")


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One attempt: what was asked, of what, and how it ended.

    `status` is the HTTP code, 0 when no answer came; `error` is then the sort of error. For a stream the record ends
    with the headers of the answer.
    """

    verb: str
    kind: str
    key: str
    status: int
    started: float  # wall clock, seconds since the epoch
    duration: float
    attempt: int
    error: str = ""


def log_request(record: RequestRecord) -> None:
    """Write one line at debug level; the facts are fields of the record."""
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
    """Counts and times requests: `konverge_client_requests_total` and `konverge_client_request_duration_seconds`.

    Labels are verb, kind and code ("<error>" when no answer came), all from small sets: names of objects are no labels.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter, Histogram

        self.requests = Counter(
            "konverge_client_requests_total", "Requests to the API server", ["verb", "kind", "code"], registry=registry
        )
        self._duration = Histogram(
            "konverge_client_request_duration_seconds", "Time to the answer", ["verb", "kind"], registry=registry
        )
        # Looking a series up by its labels costs several times what counting does.
        self._series: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def __call__(self, record: RequestRecord) -> None:
        place = (record.verb, record.kind, record.status)
        if place not in self._series:
            code = str(record.status) if record.status else "<error>"
            counted = self.requests.labels(record.verb, record.kind, code)
            self._series[place] = counted, self._duration.labels(record.verb, record.kind)
        counted, timed = self._series[place]
        counted.inc()
        timed.observe(record.duration)


class RequestSpans:
    """Makes a span of each record, as a child of the span that is current when it ends."""

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
