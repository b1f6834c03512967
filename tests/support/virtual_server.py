"""The embedded server for tests on virtual time: requests and watches without a client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from konverge.wire.messages import Request
from konverge_cluster.api.responses import Response
from konverge_cluster.embedded_server import EmbeddedServer

__all__ = ["CONFIG_MAPS", "Json", "VirtualTimeServer", "WatchReader", "config_map"]

Json = dict[str, Any]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
START = 1_800_000_000.0


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Json:
    metadata: Json = {"name": name} | ({"labels": labels} if labels else {})
    return {"metadata": metadata, "data": data}


class VirtualTimeServer:
    """An embedded server whose wall clock is the event loop's time."""

    def __init__(self, **options: Any) -> None:
        self.server = EmbeddedServer(clock=self._now, seed=1, **options)

    @staticmethod
    def _now() -> float:
        try:
            return START + asyncio.get_running_loop().time()
        except RuntimeError:
            return START

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        """Send a request; a body that is neither str nor bytes is sent as JSON, headers are named with underscores."""
        url = urlsplit(path)
        sent = {"user-agent": "unit/1"} | {name.replace("_", "-"): value for name, value in headers.items()}
        if not isinstance(body, bytes):
            body = b"" if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        query = tuple(parse_qsl(url.query, keep_blank_values=True))
        return await self.server.handle(Request(method, url.path, query, sent, body=body))

    async def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Send a request; return the code and the decoded body."""
        response = await self.send(method, path, body, **headers)
        return response.status, json.loads(await response.read())

    async def good(self, method: str, path: str, body: Any = None, **headers: str) -> Json:
        """Send a request, assert that it succeeds, and return the decoded body."""
        code, found = await self.request(method, path, body, **headers)
        assert code in (200, 201), found
        assert isinstance(found, dict)
        return found

    async def merge(self, path: str, patch: Any) -> Json:
        return await self.good("PATCH", path, patch, content_type="application/merge-patch+json")

    @asynccontextmanager
    async def watch(self, path: str, **query: Any) -> AsyncIterator[WatchReader]:
        """Open a watch and close it at the end."""
        parameters = "&".join(f"{name}={value}" for name, value in {"watch": "1", **query}.items())
        response = await self.send("GET", f"{path}?{parameters}")
        assert response.status == 200, response.body
        try:
            yield WatchReader(response)
        finally:
            await response.close()


class WatchReader:
    """An open watch, read event by event."""

    def __init__(self, response: Response) -> None:
        self._chunks = response.chunks()
        self._events: list[Json] = []

    async def next(self) -> Json:
        """Wait for the next event; raise StopAsyncIteration when the watch has ended."""
        while not self._events:
            chunk = await anext(self._chunks)
            self._events += [json.loads(line) for line in chunk.splitlines()]
        return self._events.pop(0)

    async def rest(self) -> list[Json]:
        """Wait for the end of the watch; return the remaining events."""
        found, self._events = self._events, []
        async for chunk in self._chunks:
            found += [json.loads(line) for line in chunk.splitlines()]
        return found
