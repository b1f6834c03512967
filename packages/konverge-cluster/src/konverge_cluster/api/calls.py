"""An API call: a request with its resource, verb, object, user and response format resolved."""

from __future__ import annotations

from dataclasses import dataclass, field

from konverge.wire.messages import Request
from konverge_cluster.api.authorization import ADMIN, UserInfo
from konverge_cluster.api.negotiation import View
from konverge_cluster.api.options import Query
from konverge_cluster.api.strategy import Strategy

__all__ = ["Call"]


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
    user: UserInfo = ADMIN
    warnings: list[str] = field(default_factory=list)

    @property
    def agent(self) -> str:
        return self.request.headers.get("user-agent", "")
