"""The real API server and the embedded one behind one blocking interface, for tests that send both the same request.

The embedded server runs on its own event loop in a thread, without a socket.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl, unquote

from konverge.testing import ControlPlane
from konverge.testing.leak_check import LeakCheckLoop, assert_all_closed
from konverge.wire.messages import Request
from konverge_cluster.embedded_server import EmbeddedServer

T = TypeVar("T")

AGENT = "tester/1"


@dataclass(frozen=True)
class ServerResponse:
    """The response of a server; `frames` are the lines of a watch."""

    status: int
    headers: Mapping[str, str]
    warnings: tuple[str, ...]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def frames(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines() if line.strip()]


class Server(Protocol):
    """A server. `target` is path and query as in a URL; a body that is not bytes is sent as JSON."""

    name: str

    def request(
        self, method: str, target: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> ServerResponse: ...

    def watch(self, target: str, last: Callable[[Any], bool]) -> list[Any]:
        """Watch until an event is the last one, or the watch ends; return the events."""
        ...

    def close(self) -> None: ...


def _sent(body: object, headers: Mapping[str, str] | None) -> tuple[bytes, dict[str, str]]:
    given = {"user-agent": AGENT, "accept": "application/json", **(headers or {})}
    if body is None:
        return b"", given
    given.setdefault("content-type", "application/json")
    return body if isinstance(body, bytes) else json.dumps(body).encode(), given


def _until(last: Callable[[Any], bool], lines: Iterable[bytes]) -> Iterator[Any]:
    for line in lines:
        event = json.loads(line)
        yield event
        if last(event):
            return


class RealServer:
    """The real server, over one persistent connection."""

    name = "real"

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._connection: http.client.HTTPSConnection | None = None

    def request(
        self, method: str, target: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> ServerResponse:
        sent, given = _sent(body, headers)
        try:
            return self._exchange(method, target, sent, given)
        except (http.client.RemoteDisconnected, ConnectionError):
            # The server closes a connection after some errors; the next request needs a new one.
            self.close()
            return self._exchange(method, target, sent, given)

    def _exchange(self, method: str, target: str, sent: bytes, given: dict[str, str]) -> ServerResponse:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request(method, target, sent or None, given)
        response = self._connection.getresponse()
        text = response.read()
        named = {name.lower(): value for name, value in response.getheaders()}
        return ServerResponse(response.status, named, tuple(response.headers.get_all("Warning") or ()), text)

    def watch(self, target: str, last: Callable[[Any], bool]) -> list[Any]:
        connection = self._connect()
        try:
            connection.request("GET", target, None, {"user-agent": AGENT, "accept": "application/json"})
            return list(_until(last, connection.getresponse()))
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPSConnection:
        host = self._plane.url.removeprefix("https://")
        return http.client.HTTPSConnection(host, context=self._plane.credentials.admin_context(), timeout=60)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class EmbeddedServerThread:
    """The embedded server, in a thread with its own event loop."""

    name = "embedded"

    def __init__(self) -> None:
        self._loop = LeakCheckLoop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.plane = EmbeddedServer(seed=1)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's loop; return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(90)

    def request(
        self, method: str, target: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> ServerResponse:
        sent, given = _sent(body, headers)
        path, _, query = target.partition("?")
        pairs = tuple(parse_qsl(query, keep_blank_values=True))
        return self.run(self._request(Request(method, unquote(path), pairs, given, body=sent)))

    async def _request(self, request: Request) -> ServerResponse:
        async with await self.plane.handle(request) as response:
            return ServerResponse(response.status, response.headers, response.warnings, await response.read())

    def watch(self, target: str, last: Callable[[Any], bool]) -> list[Any]:
        path, _, query = target.partition("?")
        _, given = _sent(None, None)
        request = Request("GET", unquote(path), tuple(parse_qsl(query, keep_blank_values=True)), given)
        return self.run(self._watch(request, last))

    async def _watch(self, request: Request, last: Callable[[Any], bool]) -> list[Any]:
        events: list[Any] = []
        async with await self.plane.handle(request) as response:
            async for chunk in response.chunks():
                for line in chunk.splitlines():
                    events.append(json.loads(line))
                    if last(events[-1]):
                        return events
        return events

    def listen(self, kubeconfig: Path) -> None:
        """Open a port, and write a kubeconfig for it."""
        self.run(self.plane.start())
        self.plane.write_kubeconfig(kubeconfig)

    def close(self) -> None:
        self.run(self.plane.stop())
        self.run(assert_all_closed())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
