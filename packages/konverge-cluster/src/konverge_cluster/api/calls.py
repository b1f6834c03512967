"""An API call: a request with its resource, verb, object, user and response format resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from konverge.wire.messages import Request
from konverge_cluster.api.negotiation import View
from konverge_cluster.api.options import Query
from konverge_cluster.api.strategy import Strategy

__all__ = ["ADMIN", "Call"]

ADMIN: Final[Mapping[str, Any]] = {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}


@dataclass(slots=True)
class Call:
    """One API call (the real server's RequestInfo).

    `name` is "" for a collection. `namespace` is "" for all namespaces and for a cluster-scoped kind.
    """

    request: Request
    query: Query
    strategy: Strategy
    verb: str
    namespace: str
    name: str
    subresource: str
    view: View
    user: Mapping[str, Any] = field(default_factory=lambda: ADMIN)
    warnings: list[str] = field(default_factory=list)

    @property
    def agent(self) -> str:
        return self.request.headers.get("user-agent", "")
