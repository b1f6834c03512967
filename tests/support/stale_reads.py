"""A server whose lists and watches are old: they come from a snapshot, while reads of one object and writes are live.

An API server that lost its etcd, or a proxy with a cache, behaves like this.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self

from konverge.wire.frames import INITIAL_EVENTS_END
from konverge.wire.messages import BufferedResponse, Request, Response, Transport

__all__ = ["StaleReads"]

Json = dict[str, Any]


class StaleReads:
    """A transport whose lists and watches come from the last snapshot while it is stale, whatever version is asked for.

    `take_snapshot` lists collections by their paths; `start` cuts the open watches, and `stop` too. `versions` are
    those of the snapshot.
    """

    can_stall = True

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._lists: dict[str, Json] = {}
        self._stale = False
        self._changed = asyncio.Event()

    async def take_snapshot(self, *paths: str) -> None:
        for path in paths:
            headers = {"accept": "application/json"}
            response = await self._inner.send(Request("GET", path, headers=headers, timeout=60))
            async with response:
                self._lists[path] = json.loads(await response.read())

    @property
    def versions(self) -> dict[str, str]:
        return {path: found["metadata"]["resourceVersion"] for path, found in self._lists.items()}

    def start(self) -> None:
        self._switch(stale=True)

    def stop(self) -> None:
        self._switch(stale=False)

    def _switch(self, *, stale: bool) -> None:
        self._stale = stale
        self._changed.set()
        self._changed = asyncio.Event()

    async def send(self, request: Request) -> Response:
        query = dict(request.query)
        watches = query.get("watch") in ("true", "1")
        found = self._lists.get(request.path) if request.method == "GET" and self._stale else None
        if found is not None:
            if watches:
                return _Stream(_frames(found, query), float(query.get("timeoutSeconds", 600)), self._changed)
            return BufferedResponse(200, json.dumps(found).encode(), {"content-type": "application/json"})
        response = await self._inner.send(request)
        return _CutResponse(response, self._changed) if watches else response

    async def close(self) -> None:
        await self._inner.close()


def _frames(found: Json, query: Mapping[str, str]) -> bytes:
    """Return what a watch of the old server sends: the initial events if they are asked for, else nothing."""
    if query.get("sendInitialEvents") != "true":
        return b""
    type_ = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
    frames: list[Json] = [{"type": "ADDED", "object": type_ | item} for item in found["items"]]
    metadata = {"resourceVersion": found["metadata"]["resourceVersion"], "annotations": {INITIAL_EVENTS_END: "true"}}
    frames.append({"type": "BOOKMARK", "object": type_ | {"metadata": metadata}})
    return b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)


class _Stream:
    """A watch that sends some data, and then nothing until it times out or the server changes."""

    status = 200
    warnings = ()

    def __init__(self, data: bytes, timeout: float, changed: asyncio.Event) -> None:
        self.headers: Mapping[str, str] = {"content-type": "application/json"}
        self._data = data
        self._timeout = timeout
        self._changed = changed

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._data:
            yield self._data
        try:
            async with asyncio.timeout(self._timeout):
                await self._changed.wait()
        except TimeoutError:
            return

    async def close(self) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _CutResponse(_Stream):
    """A live watch that ends when the server changes."""

    def __init__(self, inner: Response, changed: asyncio.Event) -> None:
        super().__init__(b"", 0.0, changed)
        self._inner = inner
        self.status = inner.status
        self.headers = inner.headers

    async def read(self) -> bytes:
        return await self._inner.read()

    async def chunks(self) -> AsyncIterator[bytes]:
        limit = asyncio.timeout(None)
        cut = asyncio.create_task(self._cut(limit))
        try:
            async with limit:
                async for chunk in self._inner.chunks():
                    yield chunk
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            cut.cancel()

    async def _cut(self, limit: asyncio.Timeout) -> None:
        await self._changed.wait()
        limit.reschedule(asyncio.get_running_loop().time())

    async def close(self) -> None:
        await self._inner.close()
