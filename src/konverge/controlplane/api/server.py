"""The API server: one `handle(request) -> answer` for every path, usable with and without a socket.

server = ApiServer()
answer = await server.handle(Request("GET", "/api/v1/namespaces"))
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from konverge.controlplane.api import refusals
from konverge.controlplane.api.answers import Answer, refusal_answer, text_answer
from konverge.controlplane.api.calls import ADMIN, Call
from konverge.controlplane.api.cluster import Cluster
from konverge.controlplane.api.deletes import answer_delete, answer_delete_collection
from konverge.controlplane.api.negotiation import negotiate
from konverge.controlplane.api.options import Query
from konverge.controlplane.api.patch_calls import answer_patch
from konverge.controlplane.api.reads import answer_get, answer_listing
from konverge.controlplane.api.refusals import Refusal
from konverge.controlplane.api.routing import Route, route
from konverge.controlplane.api.strategy import Strategy
from konverge.controlplane.api.updates import answer_update
from konverge.controlplane.api.watches import answer_watch
from konverge.controlplane.api.writes import answer_create
from konverge.wire.messages import Request

__all__ = ["ApiServer"]

Handler = Callable[[Cluster, Call], Awaitable[Answer]]

_log = logging.getLogger("konverge.controlplane")

_HANDLERS: Final[Mapping[str, Handler]] = {
    "get": answer_get,
    "list": answer_listing,
    "watch": answer_watch,
    "create": answer_create,
    "update": answer_update,
    "patch": answer_patch,
    "delete": answer_delete,
    "deletecollection": answer_delete_collection,
}
_OBJECT_VERBS: Final = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS: Final = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}


class ApiServer:
    """Answers requests on one cluster.

    Promises: `handle` never raises for anything that a request contains, the answer says what is wrong with it; a
    request that is refused has changed nothing.
    """

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.cluster = cluster or Cluster()

    async def handle(self, request: Request, user: Mapping[str, Any] = ADMIN) -> Answer:
        """Answer one request of a user."""
        call: Call | None = None
        try:
            where = route(request.path)
            if where is None:
                return text_answer(404, "404 page not found\n")
            call = self._call(request, where, user)
            answer = await _HANDLERS[call.verb](self.cluster, call)
        except Refusal as refusal:
            answer = refusal_answer(refusal)
        except Exception:
            _log.exception("request failed", extra={"method": request.method, "path": request.path})
            answer = refusal_answer(refusals.internal_error("the server could not handle the request"))
        answer.headers["audit-id"] = self.cluster.new_uid()
        answer.headers["cache-control"] = "no-cache, private"
        if call is not None and call.warnings:
            answer.warnings = tuple(_warning(text) for text in dict.fromkeys(call.warnings))
        return answer

    def _call(self, request: Request, where: Route, user: Mapping[str, Any]) -> Call:
        strategy = self._strategy(where)
        query = Query(request.query)
        verb = _verb(request.method, where, query)
        view = negotiate(request.headers.get("accept", ""), custom=strategy.custom)
        return Call(request, query, strategy, verb, where.namespace, where.name, where.subresource, view, user)

    def _strategy(self, where: Route) -> Strategy:
        strategy = self.cluster.registry.find(where.group, where.version, where.plural)
        if strategy is None:
            raise refusals.no_such_resource()
        namespaced = strategy.info.kind.namespaced
        if (where.namespace and not namespaced) or (where.name and namespaced and not where.namespace):
            raise refusals.no_such_resource()
        return strategy


def _verb(method: str, where: Route, query: Query) -> str:
    verb = (_OBJECT_VERBS if where.name else _COLLECTION_VERBS).get(method)
    if verb is None:
        raise refusals.method_not_allowed()
    if verb in ("get", "list") and (where.watch or query.flag("watch")):
        return "watch"
    return verb


def _warning(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
