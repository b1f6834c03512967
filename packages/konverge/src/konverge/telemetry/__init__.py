"""What can be seen from outside: metrics, logs, and one record for each record with the API server."""

from konverge.telemetry.controllers import ControllerMetrics
from konverge.telemetry.requests import RequestRecord, RequestMetrics, RequestSpans, log_request
from konverge.telemetry.generations import GenerationClock
from konverge.telemetry.logs import ContextLogger, HumanFormatter, JsonFormatter, configure_logs
from konverge.telemetry.secrets import without_secrets
from konverge.telemetry.snapshots import CacheSnapshot, ControllerSnapshot, EventSnapshot, LeaseSnapshot, Sources

__all__ = [
    "CacheSnapshot",
    "ContextLogger",
    "ControllerMetrics",
    "ControllerSnapshot",
    "EventSnapshot",
    "RequestRecord",
    "RequestMetrics",
    "RequestSpans",
    "GenerationClock",
    "HumanFormatter",
    "JsonFormatter",
    "LeaseSnapshot",
    "Sources",
    "configure_logs",
    "log_request",
    "without_secrets",
]
