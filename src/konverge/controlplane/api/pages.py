"""The paths that are no resources: the version, health, the root, metrics."""

from __future__ import annotations

from typing import Any, Final

from konverge.controlplane.api import refusals
from konverge.controlplane.api.answers import Answer, text_answer
from konverge.controlplane.api.bodies import JSON
from konverge.controlplane.api.cluster import encode
from konverge.wire.messages import Request

__all__ = ["SERVER_VERSION", "answer_page"]

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
_CHECKS: Final = ("ping", "log", "etcd")


def answer_page(request: Request, paths: list[str]) -> Answer | None:
    """Answer a path that is no resource; None when there is no such page. `paths` are those of discovery."""
    path = request.path.rstrip("/") or "/"
    if path == "/version":
        return _page(request, _VERSION)
    if path == "/":
        others = [*_HEALTH, "/metrics", "/openapi/v3", "/version"]
        return _page(request, {"paths": sorted([*paths, *others])})
    if path == "/metrics":
        return text_answer(200, "")
    for root in _HEALTH:
        if path == root:
            return text_answer(200, _verbose(root[1:]) if _asks_verbose(request) else "ok")
        if path.startswith(f"{root}/") and path.removeprefix(f"{root}/") in _CHECKS:
            return text_answer(200, "ok")
    return None


def _asks_verbose(request: Request) -> bool:
    return any(name == "verbose" for name, _ in request.query)


def _verbose(name: str) -> str:
    return "".join(f"[+]{check} ok\n" for check in _CHECKS) + f"{name} check passed\n"


def _page(request: Request, document: Any) -> Answer:
    if request.method != "GET":
        raise refusals.method_not_allowed()
    return Answer(200, encode(document), {"content-type": JSON})
