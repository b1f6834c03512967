"""THE ROOF: one process of an operator. Stages started in order and stopped in reverse; leader, probes, signals."""

from konverge.manager.elector import Election
from konverge.manager.endpoints import Endpoints
from konverge.manager.manager import Manager
from konverge.manager.operator import Operator
from konverge.manager.webhook_serving import WebhookServing

__all__ = ["Election", "Endpoints", "Manager", "Operator", "WebhookServing"]
