"""What can be seen from outside: metrics, logs, and one record for each exchange with the API server."""

from konverge.telemetry.controllers import ControllerMetrics
from konverge.telemetry.exchanges import Exchange, ExchangeMetrics, ExchangeSpans, log_exchange
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
    "Exchange",
    "ExchangeMetrics",
    "ExchangeSpans",
    "GenerationClock",
    "HumanFormatter",
    "JsonFormatter",
    "LeaseSnapshot",
    "Sources",
    "configure_logs",
    "log_exchange",
    "without_secrets",
]
