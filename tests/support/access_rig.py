"""The real server and the embedded one for many requests of many users: the real one answers several at a time."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from konverge.testing import ControlPlane
from konverge.wire.messages import Request
from konverge_cluster.api.authorization import ADMIN, AUTHENTICATED, UserInfo
from konverge_cluster.embedded_server import EmbeddedServer

__all__ = ["AccessServer", "Ask", "EmbeddedAccess", "RealAccess"]

_THREADS = 8


@dataclass(frozen=True)
class Ask:
    """A request: as a user, "" for the admin, with headers for impersonation; several values are lines."""

    method: str
    path: str
    body: Any = None
    user: str = ""
    headers: dict[str, str] = field(default_factory=dict)


Answer = tuple[int, Any]


class AccessServer(Protocol):
    """A server that answers requests in order or several at a time."""

    name: str

    def ask(self, request: Ask) -> Answer: ...

    def ask_all(self, requests: Sequence[Ask]) -> list[Answer]: ...


class EmbeddedAccess:
    """The embedded server, without a socket."""

    name = "embedded"

    def __init__(self, server: EmbeddedServer, runner: asyncio.Runner) -> None:
        self.server = server
        self._runner = runner

    def ask(self, request: Ask) -> Answer:
        return self.ask_all([request])[0]

    def ask_all(self, requests: Sequence[Ask]) -> list[Answer]:
        return self._runner.run(self._answers(requests))

    async def _answers(self, requests: Iterable[Ask]) -> list[Answer]:
        return [await self._answer(each) for each in requests]

    async def _answer(self, request: Ask) -> Answer:
        headers = {name.lower(): value for name, value in _headers(request).items()}
        path, _, query = request.path.partition("?")
        pairs = tuple((name, value) for name, _, value in (each.partition("=") for each in query.split("&")) if name)
        user = UserInfo(request.user, (AUTHENTICATED,)) if request.user else ADMIN
        response = await self.server.handle(Request(request.method, path, pairs, headers, body=_body(request)), user)
        return response.status, _content(await response.read())


class RealAccess:
    """A real server: users have client certificates, connections are kept."""

    name = "real"

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._host = plane.url.removeprefix("https://")
        self._contexts: dict[str, ssl.SSLContext] = {"": plane.credentials.admin_context()}
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(_THREADS)
        self._opened: list[http.client.HTTPSConnection] = []

    def ask(self, request: Ask) -> Answer:
        return self.ask_all([request])[0]

    def ask_all(self, requests: Sequence[Ask]) -> list[Answer]:
        for user in {each.user for each in requests} - self._contexts.keys():
            self._contexts[user] = self._context(user)
        return list(self._pool.map(self._answer, requests))

    def close(self) -> None:
        self._pool.shutdown()
        for connection in self._opened:
            connection.close()

    def _context(self, user: str) -> ssl.SSLContext:
        pair = self._plane.credentials.authority.sign(user, file=f"access-{len(self._contexts)}")
        context = ssl.create_default_context(cafile=str(self._plane.ca_file))
        context.load_cert_chain(pair.cert, pair.key)
        return context

    def _answer(self, request: Ask) -> Answer:
        connection = self._connection(request.user)
        body = _body(request)
        connection.putrequest(request.method, request.path)
        connection.putheader("Content-Length", str(len(body)))
        for name, values in _headers(request).items():
            for value in values.split("\n"):
                connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        return response.status, _content(response.read())

    def _connection(self, user: str) -> http.client.HTTPSConnection:
        """Return the connection of this thread for a user."""
        connections: dict[str, http.client.HTTPSConnection] = self._local.__dict__
        if user not in connections:
            connections[user] = http.client.HTTPSConnection(self._host, context=self._contexts[user], timeout=60)
            self._opened.append(connections[user])
        return connections[user]


def _headers(request: Ask) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": "access/1",
    } | request.headers


def _body(request: Ask) -> bytes:
    return b"" if request.body is None else json.dumps(request.body).encode()


def _content(body: bytes) -> Any:
    """Return the object of a response, or its text: health checks have no JSON."""
    return json.loads(body) if body.startswith(b"{") else body.decode()
