"""Requests to two servers: the embedded one and a real one.

`EmbeddedApi` and `RealApi` have the same interface. `masked` replaces what may differ between two responses: uids,
versions, times.
"""

from __future__ import annotations

import asyncio
import copy
import http.client
import itertools
import json
import re
import ssl
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from konverge.testing import ControlPlane
from konverge.wire.messages import Request
from konverge_cluster.api.authorization import ADMIN, AUTHENTICATED, UserInfo
from konverge_cluster.embedded_server import EmbeddedServer

Json = dict[str, Any]
A = TypeVar("A", bound="Api")

__all__ = ["Api", "ApiResponse", "EmbeddedApi", "Json", "RealApi", "masked", "sort_managed_fields", "with_namespace"]

_counter = itertools.count(1)
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?Z")


@dataclass(frozen=True)
class ApiResponse:
    """The response of a server; `warnings` are the values of its Warning headers."""

    status: int
    headers: Mapping[str, str]
    warnings: tuple[str, ...]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def events(self) -> list[Json]:
        """Return the events in the body of a watch that has ended."""
        return [json.loads(line) for line in self.body.splitlines()]


class Api(ABC):
    """A server, and a namespace in it that no other test uses."""

    name: str

    def __init__(self) -> None:
        self.namespace = f"contract-{next(_counter)}"
        self.impersonation: dict[str, str] = {}

    @abstractmethod
    def send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> ApiResponse:
        """Send a request and read the complete response."""

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> ApiResponse:
        """Send a request. A body that is neither str nor bytes is sent as JSON; headers are named with underscores."""
        sent = {"accept": "application/json", "user-agent": "contract/1", **self.impersonation}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        if body is None:
            content = b""
        else:
            sent.setdefault("content-type", "application/json")
            content = (
                body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
            )
        return self.send(method, path, sent, content)

    def at(self, plural: str, name: str = "", group: str = "", version: str = "v1") -> str:
        """Return the path of a collection or an object in the namespace."""
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        path = f"{root}/namespaces/{self.namespace}/{plural}"
        return f"{path}/{name}" if name else path

    def make(self, plural: str, body: Json, group: str = "") -> Json:
        """Create an object, and assert that it succeeds."""
        reply = self.request("POST", self.at(plural, group=group), body)
        assert reply.status == 201, reply.body
        return dict(reply.json())

    def as_user(self: A, name: str) -> A:
        """Return the same server and namespace for an authenticated user without other groups."""
        api = copy.copy(self)
        api.impersonation = {"impersonate-user": name}
        return api

    def watch(self, path: str, **query: Any) -> list[Json]:
        """Return the events of a watch that lasts a second."""
        wanted = {"watch": "1", "timeoutSeconds": "1", **query}
        reply = self.request("GET", f"{path}?" + "&".join(f"{name}={value}" for name, value in wanted.items()))
        assert reply.status == 200, reply.body
        return reply.events()


class EmbeddedApi(Api):
    """The embedded server, without a socket and on virtual time."""

    name = "embedded"

    def __init__(self, server: EmbeddedServer, runner: asyncio.Runner) -> None:
        super().__init__()
        self.server = server
        self.user = ADMIN
        self._runner = runner

    def as_user(self, name: str) -> EmbeddedApi:
        api = copy.copy(self)
        api.user = UserInfo(name, (AUTHENTICATED,))
        return api

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> ApiResponse:
        url = urlsplit(path)
        query = tuple(parse_qsl(url.query, keep_blank_values=True))
        return self._runner.run(self._send(Request(method, url.path, query, headers, body=body)))

    async def _send(self, request: Request) -> ApiResponse:
        response = await self.server.handle(request, self.user)
        return ApiResponse(response.status, response.headers, response.warnings, await response.read())


class RealApi(Api):
    """A real server, over HTTPS."""

    name = "real"

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__()
        self._port = urlsplit(plane.url).port
        self._token = plane.admin_token
        self._context = ssl.create_default_context(cafile=str(plane.ca_file))

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> ApiResponse:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._context, timeout=30)
        try:
            connection.request(method, path, body or None, {"Authorization": f"Bearer {self._token}", **headers})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        warnings = tuple(value for name, value in response.getheaders() if name == "Warning")
        named = {name.lower(): value for name, value in response.getheaders()}
        return ApiResponse(response.status, named, warnings, content)


def with_namespace(api: A) -> A:
    """Create the namespace that the tests of this server use."""
    reply = api.request("POST", "/api/v1/namespaces", {"metadata": {"name": api.namespace}})
    assert reply.status == 201, reply.body
    return api


def masked(value: Any, key: str = "") -> Any:
    """Return a value with uids, versions and times replaced by placeholders."""
    if isinstance(value, dict):
        return {name: masked(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [masked(each, key) for each in value]
    if not isinstance(value, str):
        return value
    if key in ("resourceVersion", "continue") and value:
        return f"<{key}>"
    return _TIME.sub("<time>", _UID.sub("<uid>", value))


def sort_managed_fields(value: Any) -> Any:
    """Sort managedFields: a server sorts them by time, so their order depends on the second of a write."""
    if isinstance(value, dict):
        value = {name: sort_managed_fields(each) for name, each in value.items()}
        if isinstance(value.get("managedFields"), list):
            value["managedFields"] = sorted(value["managedFields"], key=lambda entry: json.dumps(entry, sort_keys=True))
        return value
    return [sort_managed_fields(each) for each in value] if isinstance(value, list) else value
