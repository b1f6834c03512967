"""What can be seen from outside: metrics, logs, and one record for each exchange with the API server."""

from konverge.telemetry.exchanges import Exchange, ExchangeMetrics, ExchangeSpans, log_exchange
from konverge.telemetry.logs import ContextLogger, HumanFormatter, JsonFormatter, configure_logs
from konverge.telemetry.secrets import without_secrets

__all__ = [
    "ContextLogger",
    "Exchange",
    "ExchangeMetrics",
    "ExchangeSpans",
    "HumanFormatter",
    "JsonFormatter",
    "configure_logs",
    "log_exchange",
    "without_secrets",
]
