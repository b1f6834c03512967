"""Custom resources on two servers at once: definitions installed on both, answers compared after masking."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

from crd_cases import Json
from judges import Recorder
from two_servers import Api, Reply, masked

__all__ = ["DEFINITIONS", "Pair", "outcome"]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_CHANCE = re.compile(r'^[0-9]+s$|selfType[0-9]*|resourceVersion\\*":\\*"[0-9]+')
"""Ages, names and numbers that are a server's own affair."""


class Pair:
    """Two servers that get the same requests."""

    def __init__(self, embedded: Api, real: Api) -> None:
        self.servers = (embedded, real)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[Any, Any]:
        """What the two make of a request, as far as both must make the same of it."""
        ours, theirs = (outcome(api.ask(method, path, body, **headers)) for api in self.servers)
        return ours, theirs

    def edit(self, path: str, change: Callable[[Json], Any], to: str = "") -> tuple[Any, Any]:
        """Read an object, change it, and put it back (`to` another path), on each server."""
        return tuple(_edited(api, path, change, to or path) for api in self.servers)

    def install(self, *definitions: Json) -> None:
        """Create definitions on both, and wait until objects can be made of them."""
        for api in self.servers:
            for definition in definitions:
                reply = api.ask("POST", DEFINITIONS, definition)
                assert reply.status == 201, reply.body
            for definition in definitions:
                await_established(api, definition["metadata"]["name"])

    def settle(self, path: str, check: Callable[[Reply], bool]) -> None:
        """Wait until both servers answer a GET with something that `check` likes."""
        for api in self.servers:
            _until(api, partial(_answers, api, path, check))

    def await_status(self, path: str, body: Json, status: int) -> None:
        """Wait until both servers answer a POST with a status."""
        for api in self.servers:
            _until(api, partial(_answers, api, path, lambda reply: reply.status == status, body))


def _answers(api: Api, path: str, check: Callable[[Reply], bool], body: Json | None = None) -> bool:
    return check(api.ask("GET" if body is None else "POST", path, body))


def await_established(api: Api, name: str) -> None:
    def is_served() -> bool:
        document = api.ask("GET", f"{DEFINITIONS}/{name}").json()
        conditions = {each["type"]: each["status"] for each in document["status"]["conditions"] or ()}
        served = [each["name"] for each in document["spec"]["versions"] if each["served"]]
        group, plural = document["spec"]["group"], document["spec"]["names"]["plural"]
        paths = [f"/apis/{group}/{version}/{plural}" for version in served]
        return conditions.get("Established") == "True" and all(api.ask("GET", path).status == 200 for path in paths)

    _until(api, is_served)


def _until(api: Api, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    with api.waiting() if isinstance(api, Recorder) else nullcontext():
        while not holds():
            assert time.monotonic() < deadline, "it does not happen"


def _edited(api: Api, path: str, change: Callable[[Json], Any], to: str) -> Any:
    while True:
        document = api.ask("GET", path).json()
        change(document)
        reply = api.ask("PUT", to, document)
        # The real server writes conditions of definitions whenever it pleases.
        if reply.status != 409:
            return outcome(reply)


def outcome(reply: Reply) -> Any:
    """Status, warnings and body. The order in which a server finds problems is left to it."""
    try:
        body = _owners_in_order(masked(reply.json()))
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


def _owners_in_order(value: Any) -> Any:
    """Sort the owners of fields: a server sorts them by time, so their order depends on when a second passes."""
    if isinstance(value, dict):
        value = {name: _owners_in_order(each) for name, each in value.items()}
        if isinstance(value.get("managedFields"), list):
            value["managedFields"] = sorted(value["managedFields"], key=lambda entry: json.dumps(entry, sort_keys=True))
        return value
    return [_owners_in_order(each) for each in value] if isinstance(value, list) else value
