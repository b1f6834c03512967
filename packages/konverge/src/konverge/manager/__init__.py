"""One process of an operator: stages that start in order and stop in reverse, leader election, probes and signals."""

from konverge.manager.elector import LeaderElection
from konverge.manager.endpoints import Endpoints
from konverge.manager.manager import Manager
from konverge.manager.operator import Operator
from konverge.manager.runnables import OpenShared, Runnable, RunnableContext, RunnableFunction
from konverge.manager.webhook_serving import WebhookServing

__all__ = [
    "Endpoints",
    "LeaderElection",
    "Manager",
    "OpenShared",
    "Operator",
    "Runnable",
    "RunnableContext",
    "RunnableFunction",
    "WebhookServing",
]
