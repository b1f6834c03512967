"""OpenTelemetry spans of reconciles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from konverge.reconcile.observers import ActiveReconcile, ReconcileEnd, ReconcileObserver
from konverge.telemetry.secrets import without_secrets

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

__all__ = ["ReconcileSpans"]


class ReconcileSpans(ReconcileObserver):
    """Create a span for each reconcile; spans that are created during it are its children.

    Its status is an error if the reconcile failed.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def begin(self, reconcile: ActiveReconcile) -> None:
        """Start a span, and make it the current one."""
        from opentelemetry import context, trace

        span = self._tracer.start_span(
            f"reconcile {reconcile.controller}",
            attributes={
                "k8s.kind": reconcile.kind.kind,
                "k8s.key": str(reconcile.key),
                "konverge.controller": reconcile.controller,
                "konverge.reconcile_id": reconcile.reconcile_id,
                "konverge.attempt": reconcile.attempt,
                "konverge.queue_wait": reconcile.queue_wait,
            },
        )
        reconcile.state[self] = span, context.attach(trace.set_span_in_context(span))

    def end(self, reconcile: ActiveReconcile, end: ReconcileEnd) -> None:
        """End the span."""
        from opentelemetry import context
        from opentelemetry.trace import Status, StatusCode

        span, token = reconcile.state[self]
        context.detach(token)
        span.set_attribute("konverge.outcome", str(end.outcome))
        if end.error:
            span.set_status(Status(StatusCode.ERROR, without_secrets(end.error)))
        span.end()
