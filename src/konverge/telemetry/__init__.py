"""What can be seen from outside: one record for each exchange with the API server, as log line, metric or span."""

from konverge.telemetry.exchanges import Exchange, ExchangeMetrics, ExchangeSpans, log_exchange

__all__ = ["Exchange", "ExchangeMetrics", "ExchangeSpans", "log_exchange"]
