"""The options of a manager."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from konverge.cache import CacheOptions
from konverge.client import Client, ClientConfig, RetryPolicy
from konverge.manager.elector import LeaderElection
from konverge.manager.endpoints import Endpoints
from konverge.manager.runnables import OpenShared, Runnable
from konverge.manager.webhook_serving import WebhookServing
from konverge.objects import Kind
from konverge.reconcile import EventLimits, Journal, ReconcileObserver
from konverge.telemetry import RequestRecord

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from konverge.manager.leader_elections import LeaderCallback

__all__ = ["ManagerOptions"]


@dataclass(frozen=True, kw_only=True)
class ManagerOptions:
    """The options of a manager."""

    client: Client | ClientConfig | None
    name: str
    namespaces: tuple[str, ...]
    leader_election: LeaderElection | None
    endpoints: Endpoints | None
    by_kind: Mapping[Kind, CacheOptions] = field(default_factory=dict)
    grace: float = 20.0
    webhooks: WebhookServing | None = None
    controller_elections: Mapping[str, LeaderElection | None] = field(default_factory=dict)
    leader_callbacks: tuple[LeaderCallback, ...] = ()
    metrics: tuple[Collector, ...] = ()
    runnables: tuple[Runnable, ...] = ()
    shared: tuple[OpenShared, ...] = ()
    event_limits: EventLimits | None = None
    checks_permissions: bool = True
    observers: tuple[ReconcileObserver, ...] = ()
    request_observers: tuple[Callable[[RequestRecord], None], ...] = ()
    retry: RetryPolicy | None = None
    new_journal: Callable[[], Journal] = Journal
