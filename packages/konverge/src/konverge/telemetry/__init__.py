"""Metrics, logs, and a record of each request to the API server."""

from konverge.telemetry.controllers import ControllerMetrics
from konverge.telemetry.generations import GenerationClock
from konverge.telemetry.logs import ContextLogger, HumanFormatter, JsonFormatter, configure_logging, ensure_logging
from konverge.telemetry.requests import RequestMetrics, RequestRecord, RequestSpans, log_request
from konverge.telemetry.secrets import without_secrets
from konverge.telemetry.snapshots import (
    CacheSnapshot,
    ControllerSnapshot,
    EventSnapshot,
    LeaseSnapshot,
    SnapshotSources,
)

__all__ = [
    "CacheSnapshot",
    "ContextLogger",
    "ControllerMetrics",
    "ControllerSnapshot",
    "EventSnapshot",
    "GenerationClock",
    "HumanFormatter",
    "JsonFormatter",
    "LeaseSnapshot",
    "RequestMetrics",
    "RequestRecord",
    "RequestSpans",
    "SnapshotSources",
    "configure_logging",
    "ensure_logging",
    "log_request",
    "without_secrets",
]
