"""What can be seen from outside: metrics, logs, and one record for each exchange with the API server."""

from konverge.telemetry.controllers import ControllerMetrics
from konverge.telemetry.exchanges import Exchange, ExchangeMetrics, ExchangeSpans, log_exchange
from konverge.telemetry.generations import GenerationClock
from konverge.telemetry.logs import ContextLogger, HumanFormatter, JsonFormatter, configure_logs
from konverge.telemetry.secrets import without_secrets
from konverge.telemetry.snapshots import CacheFigures, ControllerFigures, EventFigures, LeaseFigures, Sources

__all__ = [
    "CacheFigures",
    "ContextLogger",
    "ControllerFigures",
    "ControllerMetrics",
    "EventFigures",
    "Exchange",
    "ExchangeMetrics",
    "ExchangeSpans",
    "GenerationClock",
    "HumanFormatter",
    "JsonFormatter",
    "LeaseFigures",
    "Sources",
    "configure_logs",
    "log_exchange",
    "without_secrets",
]
