"""The API server: one `handle(request) -> response` for every path, with or without a socket.

server = ApiServer()
response = await server.handle(Request("GET", "/api/v1/namespaces"))
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from konverge.wire.messages import Request
from konverge_cluster.api import status_errors
from konverge_cluster.api.authorization import ADMIN, UserInfo, check_authorized
from konverge_cluster.api.bindings import bind_named_pod, bind_pod
from konverge_cluster.api.bodies import YAML, media_type, parse_large_yaml
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.deletes import handle_delete, handle_delete_collection
from konverge_cluster.api.discovery import Discovery
from konverge_cluster.api.documents import Decoder, to_json_request
from konverge_cluster.api.evictions import evict_pod
from konverge_cluster.api.expiry import EVENTS, EventExpiry
from konverge_cluster.api.impersonation import Impersonation, requested_user
from konverge_cluster.api.negotiation import is_pretty, negotiate
from konverge_cluster.api.non_resource_urls import SERVER_VERSION, handle_non_resource_url
from konverge_cluster.api.openapi import OpenApi
from konverge_cluster.api.options import Query
from konverge_cluster.api.patch_requests import APPLY, handle_patch
from konverge_cluster.api.reads import handle_get, handle_list
from konverge_cluster.api.request_info import request_attributes
from konverge_cluster.api.responses import Response, error_response, text_response
from konverge_cluster.api.routes import Route, route
from konverge_cluster.api.scales import handle_scale
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.api.strategy import Strategy
from konverge_cluster.api.updates import handle_update
from konverge_cluster.api.views import to_yaml
from konverge_cluster.api.watches import handle_watch
from konverge_cluster.api.writes import handle_create

__all__ = ["ApiServer"]

Handler = Callable[[Cluster, Call], Awaitable[Response]]

_log = logging.getLogger("konverge_cluster")

_HANDLERS: Final[Mapping[str, Handler]] = {
    "get": handle_get,
    "list": handle_list,
    "watch": handle_watch,
    "create": handle_create,
    "update": handle_update,
    "patch": handle_patch,
    "delete": handle_delete,
    "deletecollection": handle_delete_collection,
}
_ACTIONS: Final[Mapping[tuple[str, str, str], Handler]] = {
    ("", "bindings", ""): bind_named_pod,
    ("", "pods", "binding"): bind_pod,
    ("", "pods", "eviction"): evict_pod,
}
_WARNINGS_LIMIT: Final = 4096
_SHORT_WARNING: Final = 256
_METHODS_WITH_BODY: Final = ("POST", "PUT", "DELETE")
_SCALE_HANDLERS: Final[Mapping[str, Handler]] = dict.fromkeys(("get", "update", "patch"), handle_scale)
_OBJECT_VERBS: Final = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SUBRESOURCE_VERBS: Final = _OBJECT_VERBS | {"POST": "create"}
_COLLECTION_VERBS: Final = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


class PageNotFound(Exception):
    """No resource and no API group is served at this path."""


class ApiServer:
    """Handles requests for one cluster.

    Promises: `handle` never raises because of a request's content; the response contains the error. A rejected request
    changes nothing.

    `actions` are handlers by group, plural and subresource ("" for a kind that can only be created); more can be added.
    `decoders` decode bodies of built-in kinds in media types other than JSON and YAML. `pages` are further non-resource
    URLs by path, `async_pages` those that take time.
    """

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.cluster = cluster or Cluster()
        self.actions: dict[tuple[str, str, str], Handler] = dict(_ACTIONS)
        self.decoders: dict[str, Decoder] = {}
        self.pages: dict[str, Callable[[Request], Response]] = {}
        self.async_pages: dict[str, Callable[[Request], Awaitable[Response]]] = {}
        self._impersonation = Impersonation()
        self._expiry = EventExpiry(self.cluster)
        self._discovery = Discovery(self.cluster.registry)
        self._openapi = OpenApi(self.cluster.registry, SERVER_VERSION)

    async def handle(self, request: Request, user: UserInfo = ADMIN) -> Response:
        """Handle one request of a user; return the response."""
        call: Call | None = None
        try:
            target = route(request.path)
            user = self._authorize(request, target, user)
            if target is None:
                page = self.async_pages.get(request.path)
                response = self._page(request) if page is None else await page(request)
            else:
                if media_type(request.headers.get("content-type", "")) in (YAML, APPLY):
                    request = msgspec.structs.replace(request, body=await parse_large_yaml(request.body))
                call = self._call(request, target, user)
                response = await self._handler(call)(self.cluster, call)
        except StatusError as error:
            response = _formatted_error(request, error)
        except PageNotFound:
            response = text_response(404, "404 page not found\n")
        except Exception:
            _log.exception("request failed", extra={"method": request.method, "path": request.path})
            response = error_response(status_errors.internal_error("the server could not handle the request"))
        response.headers["audit-id"] = self.cluster.new_uid()
        response.headers.setdefault("cache-control", "no-cache, private")
        if call is not None and call.warnings:
            response.warnings = tuple(_warning(text) for text in _shorten(dict.fromkeys(call.warnings)))
        return response

    def _authorize(self, request: Request, target: Route | None, user: UserInfo) -> UserInfo:
        """Check that a request is allowed; return the user that it is for, which may be an impersonated one.

        Raises: StatusError 400 or 403.
        """
        attributes = request_attributes(request, target, user)
        requested = requested_user(request.headers)
        if requested is not None:
            user = self._impersonation.user(self.cluster.authorizer, requested, attributes)
            attributes = replace(attributes, user=user)
        check_authorized(self.cluster.authorizer, attributes)
        return user

    def _page(self, request: Request) -> Response:
        for source in (self._discovery.handle, self._openapi.handle):
            response = source(request)
            if response is not None:
                return response
        extra_page = self.pages.get(request.path)
        if extra_page is not None:
            return extra_page(request)
        page = handle_non_resource_url(request, [*self._discovery.paths, *self.pages])
        if page is None:
            raise self._not_served(*request.path.split("/")[1:3])
        return page

    def _call(self, request: Request, target: Route, user: UserInfo) -> Call:
        strategy = self._strategy(target)
        if strategy.info.storage == EVENTS:
            self._expiry.delete_expired()
        query = Query(request.query)
        if strategy.custom and not target.name and request.method in ("PUT", "PATCH"):
            raise status_errors.bad_request("name must be provided")
        verb = _verb(request.method, target, query)
        if verb in ("create", "deletecollection") and not target.namespace and strategy.info.kind.namespaced:
            if "list" not in strategy.info.verbs:
                raise status_errors.no_such_resource()
            raise PageNotFound if strategy.custom else status_errors.method_not_allowed()
        request = self._decode_body(request, strategy)
        view = negotiate(request.headers.get("accept", ""), custom=strategy.custom, collection=not target.name)
        call = Call(request, query, strategy, verb, target.namespace, target.name, target.subresource, view, user)
        if strategy.deprecation:
            call.warnings.append(strategy.deprecation)
        return call

    def _decode_body(self, request: Request, strategy: Strategy) -> Request:
        if strategy.custom or request.method not in _METHODS_WITH_BODY:
            return request
        if request.method == "DELETE" and not request.body:
            return request
        decode = self.decoders.get(media_type(request.headers.get("content-type", "")))
        return request if decode is None else to_json_request(request, strategy, decode)

    def _strategy(self, target: Route) -> Strategy:
        strategy = self.cluster.registry.find(target.group, target.version, target.plural)
        if strategy is None:
            raise self._not_served("apis" if target.group else "api", target.group)
        namespaced = strategy.info.kind.namespaced
        if (target.namespace and not namespaced) or (target.name and namespaced and not target.namespace):
            raise PageNotFound if strategy.custom else status_errors.no_such_resource()
        return strategy

    def _not_served(self, root: str = "", group: str = "") -> Exception:
        """Return the error for a path that is not served: a Status in a built-in group, otherwise plain text."""
        builtin = any(each.info.kind.group == group for each in self.cluster.registry if not each.custom)
        return status_errors.no_such_resource() if root == "api" or (root == "apis" and builtin) else PageNotFound()

    def _handler(self, call: Call) -> Handler:
        info = call.strategy.info
        if not call.subresource:
            if "get" not in info.verbs:
                return self._action(call, info.verbs)
            return _allowed(call, info.verbs, _HANDLERS)
        sub = info.subresource(call.subresource)
        if sub is None:
            raise self._no_subresource(call)
        if sub.kind == "Scale":
            return _allowed(call, sub.verbs, _SCALE_HANDLERS)
        if call.strategy.endpoint(call.subresource) is not None:
            return _allowed(call, sub.verbs, _HANDLERS)
        return self._action(call, sub.verbs)

    def _action(self, call: Call, verbs: tuple[str, ...]) -> Handler:
        """Return the handler of an action: a subresource without state, or a kind that can only be created."""
        kind = call.strategy.info.kind
        action = self.actions.get((kind.group, kind.plural, call.subresource))
        if call.verb not in verbs:
            raise status_errors.method_not_allowed()
        if action is None:
            what = f"{kind.resource}/{call.subresource}" if call.subresource else kind.resource
            raise status_errors.failure(501, f"{what} is not part of the embedded control plane", "NotImplemented")
        return action

    def _no_subresource(self, call: Call) -> StatusError:
        kind = call.strategy.info.kind
        if call.strategy.custom:
            return status_errors.not_found(kind.group, kind.plural, call.name)
        return status_errors.no_such_resource()


def _allowed(call: Call, verbs: tuple[str, ...], handlers: Mapping[str, Handler]) -> Handler:
    if call.verb in verbs:
        return handlers[call.verb]
    if call.verb == "watch":
        kind = call.strategy.info.kind
        details = {"group": kind.group, "kind": kind.plural}
        text = f'watch is not supported on resources of kind "{kind.resource}"'
        raise status_errors.failure(405, text, "MethodNotAllowed", details)
    raise status_errors.method_not_allowed()


def _verb(method: str, target: Route, query: Query) -> str:
    verbs = _COLLECTION_VERBS if not target.name else _SUBRESOURCE_VERBS if target.subresource else _OBJECT_VERBS
    verb = verbs.get(method)
    if verb is None:
        raise status_errors.method_not_allowed()
    if (verb == "list" and query.flag("watch")) or (target.watch and verb in ("get", "list")):
        return "watch"
    return verb


def _formatted_error(request: Request, error: StatusError) -> Response:
    """Return an error response in the requested format: YAML, or indented JSON for interactive tools."""
    response = error_response(error)
    if request.headers.get("accept", "").startswith(YAML):
        response.body, response.headers["content-type"] = to_yaml(error.status), YAML
    elif is_pretty(Query(request.query).text("pretty"), request.headers.get("user-agent", "")):
        response.body = msgspec.json.format(response.body.rstrip(), indent=2)
    return response


def _shorten(warnings: Iterable[str]) -> Iterator[str]:
    """Yield warnings; when they are too long in all, the beginning of each until the limit is reached."""
    texts = list(warnings)
    if sum(map(len, texts)) <= _WARNINGS_LIMIT:
        yield from texts
        return
    length = 0
    for text in texts:
        if length >= _WARNINGS_LIMIT:
            return
        yield text[:_SHORT_WARNING]
        length += min(len(text), _SHORT_WARNING)


def _warning(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
