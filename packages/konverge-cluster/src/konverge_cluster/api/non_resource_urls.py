"""Non-resource URLs: version, health, the root, metrics."""

from __future__ import annotations

from typing import Any, Final

from konverge.wire.messages import Request
from konverge_cluster.api import status_errors
from konverge_cluster.api.bodies import JSON
from konverge_cluster.api.cluster import encode
from konverge_cluster.api.responses import Response, text_response

__all__ = ["SERVER_VERSION", "handle_non_resource_url"]

SERVER_VERSION: Final = "v1.36.4"

_VERSION: Final = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": SERVER_VERSION,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "konverge",
    "platform": "embedded",
}
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
# kubectl looks here for kinds that OpenAPI v3 does not have, and fails on an error. So an OpenAPI v2 document without
# definitions is served. In protobuf it has the fields swagger and info {title, version}.
_OPENAPI_V2: Final = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": SERVER_VERSION}, "paths": {}}
_OPENAPI_V2_PROTOBUF: Final = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07" + SERVER_VERSION.encode()
_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_CHECKS: Final = ("ping", "log", "etcd")


def handle_non_resource_url(request: Request, paths: list[str]) -> Response | None:
    """Respond to a non-resource URL; return None when there is none. `paths` are the discovery paths."""
    path = request.path.rstrip("/") or "/"
    if path == "/version":
        return _json_document(request, _VERSION)
    if path == "/":
        more = [*_HEALTH, "/metrics", "/openapi/v2", "/openapi/v3", "/version"]
        return _json_document(request, {"paths": sorted([*paths, *more])})
    if path == "/openapi/v2":
        return _openapi_v2(request)
    if path == "/metrics":
        return text_response(200, "")
    for root in _HEALTH:
        if path == root:
            return text_response(200, _verbose_text(root[1:]) if _is_verbose(request) else "ok")
        if path.startswith(f"{root}/") and path.removeprefix(f"{root}/") in _CHECKS:
            return text_response(200, "ok")
    return None


def _openapi_v2(request: Request) -> Response:
    if "protobuf" in request.headers.get("accept", ""):
        return Response(200, _OPENAPI_V2_PROTOBUF, {"content-type": _PROTOBUF})
    return _json_document(request, _OPENAPI_V2)


def _is_verbose(request: Request) -> bool:
    return any(name == "verbose" for name, _ in request.query)


def _verbose_text(name: str) -> str:
    return "".join(f"[+]{check} ok\n" for check in _CHECKS) + f"{name} check passed\n"


def _json_document(request: Request, document: Any) -> Response:
    if request.method != "GET":
        raise status_errors.method_not_allowed()
    return Response(200, encode(document), {"content-type": JSON})
