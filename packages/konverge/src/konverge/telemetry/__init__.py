"""Metrics, logs, and a record of each request to the API server."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from konverge.telemetry.generations import GenerationClock
from konverge.telemetry.logs import ContextLogger, HumanFormatter, JsonFormatter, configure_logging, ensure_logging
from konverge.telemetry.requests import RequestMetrics, RequestRecord, RequestSpans, log_request
from konverge.telemetry.secrets import without_secrets

if TYPE_CHECKING:
    from konverge.telemetry.controllers import ControllerMetrics
    from konverge.telemetry.snapshots import (
        CacheSnapshot,
        ControllerSnapshot,
        EventSnapshot,
        LeaseSnapshot,
        MetricValue,
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
    "MetricValue",
    "RequestMetrics",
    "RequestRecord",
    "RequestSpans",
    "SnapshotSources",
    "configure_logging",
    "ensure_logging",
    "log_request",
    "without_secrets",
]

_SNAPSHOTS = {"CacheSnapshot", "ControllerSnapshot", "EventSnapshot", "LeaseSnapshot", "MetricValue", "SnapshotSources"}


def __getattr__(name: str) -> Any:
    # Metrics are loaded by the process that serves them.
    if name in _SNAPSHOTS:
        return getattr(import_module("konverge.telemetry.snapshots"), name)
    if name == "ControllerMetrics":
        return import_module("konverge.telemetry.controllers").ControllerMetrics
    raise AttributeError(f"module 'konverge.telemetry' has no attribute {name!r}")
