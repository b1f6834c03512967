"""Custom resources on two servers: definitions are installed on both, responses are compared after masking."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

from crd_cases import Json
from recorded_api import RecordingApi
from two_servers import Api, ApiResponse, masked, sort_managed_fields

__all__ = ["DEFINITIONS", "ServerPair", "comparable"]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_CHANCE = re.compile(r'^[0-9]+s$|selfType[0-9]*|resourceVersion\\*":\\*"[0-9]+')
"""Ages, names and numbers that may differ between servers."""


class ServerPair:
    """Two servers that receive the same requests."""

    def __init__(self, embedded: Api, real: Api) -> None:
        self.servers = (embedded, real)

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[Any, Any]:
        """Send a request to both; return the comparable parts of the two responses."""
        ours, theirs = (comparable(api.request(method, path, body, **headers)) for api in self.servers)
        return ours, theirs

    def edit(self, path: str, change: Callable[[Json], Any], to: str = "") -> tuple[Any, Any]:
        """Get an object, change it, and PUT it (`to` another path), on each server."""
        return tuple(_edited(api, path, change, to or path) for api in self.servers)

    def install(self, *definitions: Json) -> None:
        """Create definitions on both, and wait until their resources are served."""
        for api in self.servers:
            for definition in definitions:
                reply = api.request("POST", DEFINITIONS, definition)
                assert reply.status == 201, reply.body
            for definition in definitions:
                await_established(api, definition["metadata"]["name"])

    def settle(self, path: str, check: Callable[[ApiResponse], bool]) -> None:
        """Wait until `check` accepts the response of both servers to a GET."""
        for api in self.servers:
            _until(api, partial(_answers, api, path, check))

    def await_status(self, path: str, body: Json, status: int) -> None:
        """Wait until both servers respond to a POST with a status."""
        for api in self.servers:
            _until(api, partial(_answers, api, path, lambda reply: reply.status == status, body))


def _answers(api: Api, path: str, check: Callable[[ApiResponse], bool], body: Json | None = None) -> bool:
    return check(api.request("GET" if body is None else "POST", path, body))


def await_established(api: Api, name: str) -> None:
    def is_served() -> bool:
        document = api.request("GET", f"{DEFINITIONS}/{name}").json()
        conditions = {each["type"]: each["status"] for each in document["status"]["conditions"] or ()}
        served = [each["name"] for each in document["spec"]["versions"] if each["served"]]
        group, plural = document["spec"]["group"], document["spec"]["names"]["plural"]
        paths = [f"/apis/{group}/{version}/{plural}" for version in served]
        return conditions.get("Established") == "True" and all(api.request("GET", path).status == 200 for path in paths)

    _until(api, is_served)


def _until(api: Api, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    with api.waiting() if isinstance(api, RecordingApi) else nullcontext():
        while not holds():
            assert time.monotonic() < deadline, "timed out"


def _edited(api: Api, path: str, change: Callable[[Json], Any], to: str) -> Any:
    while True:
        document = api.request("GET", path).json()
        change(document)
        reply = api.request("PUT", to, document)
        # The real server writes conditions of definitions at any time.
        if reply.status != 409:
            return comparable(reply)


def comparable(reply: ApiResponse) -> Any:
    """Return status, warnings and body. The order of validation errors is ignored."""
    try:
        body = sort_managed_fields(masked(reply.json()))
    except ValueError:
        return reply.status, reply.body.decode()
    warnings = sorted(reply.warnings)
    if isinstance(body, dict) and body.get("kind") == "Status" and body.get("status") == "Failure":
        causes = body.get("details", {}).get("causes", [])
        texts = sorted({json.dumps(_plain(each), sort_keys=True) for each in causes})
        message = _plain(body["message"]) if len(texts) < 2 else ""
        return reply.status, body.get("reason"), message, texts, warnings
    return reply.status, warnings, _plain(body)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return _CHANCE.sub("<own>", value) if isinstance(value, str) else value
