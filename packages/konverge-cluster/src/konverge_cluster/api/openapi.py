"""OpenAPI v3: an index, and a document for each group and version, with paths built from the registry.

Clients use a document for three things: the paths with their operations and kinds (`kubectl explain`), the parameters
and media types of PATCH (validation, and whether strategic merge is supported), and the schemas. All of these are
included; the descriptions of the parameters are not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from konverge.wire.messages import Request
from konverge_cluster.api.bodies import JSON, YAML
from konverge_cluster.api.cluster import encode
from konverge_cluster.api.negotiation import PROTOBUF
from konverge_cluster.api.patch_requests import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from konverge_cluster.api.registry import Registry
from konverge_cluster.api.responses import Response
from konverge_cluster.api.strategy import Strategy, SubresourceInfo

__all__ = ["OpenApi"]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_REFERENCE: Final = "#/components/schemas/"
_LIST_PARAMETERS: Final = {
    "allowWatchBookmarks": "boolean",
    "continue": "string",
    "fieldSelector": "string",
    "labelSelector": "string",
    "limit": "integer",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_WRITE_PARAMETERS: Final = {"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"}
_DELETE_PARAMETERS: Final = {
    "dryRun": "string",
    "gracePeriodSeconds": "integer",
    "orphanDependents": "boolean",
    "propagationPolicy": "string",
}
_ACTIONS: Final = {
    "get": ("get", "get", {}),
    "list": ("get", "list", _LIST_PARAMETERS),
    "create": ("post", "post", _WRITE_PARAMETERS),
    "update": ("put", "put", _WRITE_PARAMETERS),
    "patch": ("patch", "patch", _WRITE_PARAMETERS | {"force": "boolean"}),
    "delete": ("delete", "delete", _DELETE_PARAMETERS),
    "deletecollection": ("delete", "deletecollection", _LIST_PARAMETERS | _DELETE_PARAMETERS),
}
_PHRASES: Final = {
    "get": "read the specified",
    "list": "list or watch objects of kind",
    "create": "create a",
    "update": "replace the specified",
    "patch": "partially update the specified",
    "delete": "delete a",
    "deletecollection": "delete collection of",
}
_ALWAYS: Final = ("APIResourceList", "DeleteOptions", "Patch", "Status", "WatchEvent")
_COLLECTION_VERBS: Final = ("list", "create", "deletecollection")
_OBJECT_VERBS: Final = ("get", "update", "patch", "delete")


class OpenApi:
    """The endpoint `/openapi/v3` and the documents below it; each document is built on first request."""

    def __init__(self, registry: Registry, version: str) -> None:
        self._registry = registry
        self._version = version
        self._generation = -1
        self._documents: dict[str, tuple[bytes, str]] = {}

    def handle(self, request: Request) -> Response | None:
        """Respond to a path of OpenAPI v3; return None for another path."""
        path = request.path.rstrip("/")
        if path == "/openapi/v3":
            paths = {name: {"serverRelativeURL": self._address(name)} for name in sorted(self._names())}
            return Response(200, encode({"paths": paths}), {"content-type": "text/plain; charset=utf-8"})
        name = path.removeprefix("/openapi/v3/")
        if name == path or name not in self._names():
            return None
        body, tag = self._document(name)
        headers = {"etag": f'"{tag}"', "vary": "Accept", "content-type": JSON}
        if request.headers.get("if-none-match", "").strip('"') == tag:
            return Response(304, b"", {"etag": headers["etag"]})
        return Response(200, body, headers)

    def _names(self) -> dict[str, tuple[str, str]]:
        """Return group and version of each document, by the last part of its URL."""
        return {_name(group, version): (group, version) for group, version in self._registry.versions()}

    def _address(self, name: str) -> str:
        # A hash of the document would require building all documents; the registry's generation identifies it as well.
        return f"/openapi/v3/{name}?hash={self._tag(name)}"

    def _tag(self, name: str) -> str:
        return hashlib.sha512(f"{self._version}/{name}/{self._registry.generation}".encode()).hexdigest().upper()

    def _document(self, name: str) -> tuple[bytes, str]:
        if self._generation != self._registry.generation:
            self._documents.clear()
            self._generation = self._registry.generation
        if name not in self._documents:
            strategies = self._registry.resources(*self._names()[name])
            self._documents[name] = (encode(_document(name, strategies, self._version)), self._tag(name))
        return self._documents[name]


def _name(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _document(name: str, strategies: list[Strategy], version: str) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    names: dict[int, dict[tuple[str, str, str], str]] = {}
    for strategy in strategies:
        known = strategy.schemas()
        # Built-in kinds share one mapping, which is indexed once.
        if id(known) not in names:
            names[id(known)] = _by_kind(known)
        by_kind = names[id(known)]
        paths |= _paths(f"/{name}", strategy, by_kind)
        roots = [strategy.schema_name, f"{strategy.schema_name}List", *_subresource_schemas(strategy, by_kind)]
        roots += [f"{_META}.{each}" for each in _ALWAYS]
        schemas |= _closure(known, roots)
    _set_kinds(schemas, strategies)
    security = {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}}
    components = {"schemas": schemas, "securitySchemes": security}
    info = {"title": "Kubernetes", "version": version}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": components}


def _set_kinds(schemas: dict[str, Any], strategies: list[Strategy]) -> None:
    """Add this group and version to the kinds that every group has (DeleteOptions, WatchEvent)."""
    group, version = strategies[0].info.kind[:2]
    for name in ("DeleteOptions", "WatchEvent"):
        found = schemas.get(f"{_META}.{name}")
        if found is not None:
            kinds = [{"group": "", "version": "v1", "kind": name}, {"group": group, "version": version, "kind": name}]
            schemas[f"{_META}.{name}"] = found | {"x-kubernetes-group-version-kind": kinds if group else kinds[:1]}


def _by_kind(schemas: Mapping[str, Any]) -> dict[tuple[str, str, str], str]:
    """Return the names of schemas by their group, version and kind."""
    found: dict[tuple[str, str, str], str] = {}
    for name, schema in schemas.items():
        for each in schema.get("x-kubernetes-group-version-kind", ()):
            found.setdefault((each["group"], each["version"], each["kind"]), name)
    return found


def _kind_of(strategy: Strategy, sub: SubresourceInfo | None) -> tuple[str, str, str]:
    kind = strategy.info.kind
    if sub is None:
        return kind.group, kind.version, kind.kind
    return (sub.group, sub.version, sub.kind) if sub.version else (kind.group, kind.version, sub.kind)


def _subresource_schemas(strategy: Strategy, names: Mapping[tuple[str, str, str], str]) -> list[str]:
    found = (names.get(_kind_of(strategy, sub)) for sub in strategy.info.subresources)
    return [name for name in found if name]


def _closure(schemas: Mapping[str, Any], roots: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name not in found and name in schemas:
            found[name] = schemas[name]
            pending += _references(schemas[name])
    return found


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(_REFERENCE)
        for each in schema.values():
            yield from _references(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


def _paths(root: str, strategy: Strategy, names: Mapping[tuple[str, str, str], str]) -> dict[str, Any]:
    info, kind = strategy.info, strategy.info.kind
    base = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
    scope = [_parameter("namespace")] if kind.namespaced else []
    paths: dict[str, Any] = {}
    collection = [verb for verb in _COLLECTION_VERBS if verb in info.verbs]
    single = [verb for verb in _OBJECT_VERBS if verb in info.verbs]
    if collection:
        paths[base] = _operations(strategy, names, collection) | {"parameters": scope}
    if kind.namespaced and "list" in info.verbs:
        paths[f"{root}/{kind.plural}"] = _operations(strategy, names, ["list"]) | {"parameters": []}
    named = [_parameter("name"), *scope]
    if single:
        paths[f"{base}/{{name}}"] = _operations(strategy, names, single) | {"parameters": named}
    for sub in info.subresources:
        verbs = [verb for verb in ("get", "create", "update", "patch", "delete") if verb in sub.verbs]
        paths[f"{base}/{{name}}/{sub.name}"] = _operations(strategy, names, verbs, sub) | {"parameters": named}
    return paths


def _parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}


def _operations(
    strategy: Strategy,
    names: Mapping[tuple[str, str, str], str],
    verbs: Sequence[str],
    sub: SubresourceInfo | None = None,
) -> dict[str, Any]:
    return {_ACTIONS[verb][0]: _operation(strategy, names, verb, sub) for verb in verbs}


def _operation(
    strategy: Strategy, names: Mapping[tuple[str, str, str], str], verb: str, sub: SubresourceInfo | None
) -> dict[str, Any]:
    group, version, kind = _kind_of(strategy, sub)
    schema = names.get((group, version, kind), "") if sub else strategy.schema_name
    _, action, parameters = _ACTIONS[verb]
    operation: dict[str, Any] = {
        "description": f"{_PHRASES[verb]} {kind}",
        "operationId": _operation_id(strategy, verb, sub),
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": each, "uniqueItems": True}}
            for name, each in parameters.items()
        ],
        "responses": _responses(verb, schema),
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    }
    body = _request_body(strategy, verb, schema)
    return operation | ({"requestBody": body} if body else {})


def _operation_id(strategy: Strategy, verb: str, sub: SubresourceInfo | None) -> str:
    kind = strategy.info.kind
    words = {"get": "read", "update": "replace", "deletecollection": "deleteCollection"}
    group = "".join(part.capitalize() for part in (kind.group or "core").removesuffix(".k8s.io").split("."))
    scope = "Namespaced" if kind.namespaced else ""
    tail = sub.name.capitalize() if sub else ""
    return f"{words.get(verb, verb)}{group}{kind.version.capitalize()}{scope}{kind.kind}{tail}"


def _reference(schema: str) -> dict[str, Any]:
    return {"schema": {"$ref": _REFERENCE + schema}} if schema else {}


def _request_body(strategy: Strategy, verb: str, schema: str) -> dict[str, Any]:
    if verb == "patch":
        kinds = [APPLY, JSON_PATCH, MERGE_PATCH, *([STRATEGIC_PATCH] if strategy.strategic else [])]
        return {"content": {kind: _reference(f"{_META}.Patch") for kind in kinds}, "required": True}
    if verb in ("create", "update"):
        return {"content": {"*/*": _reference(schema)}, "required": True}
    if verb in ("delete", "deletecollection"):
        return {"content": {"*/*": _reference(f"{_META}.DeleteOptions")}}
    return {}


def _responses(verb: str, schema: str) -> dict[str, Any]:
    schema_name = {"list": f"{schema}List" if schema else "", "deletecollection": f"{_META}.Status"}.get(verb, schema)
    response = {"description": "OK", "content": {media: _reference(schema_name) for media in (JSON, PROTOBUF, YAML)}}
    responses: dict[str, Any] = {"200": response, "401": {"description": "Unauthorized"}}
    return responses | ({"201": response | {"description": "Created"}} if verb in ("create", "update", "patch") else {})
