"""A model collection as a server without sockets: paged lists and open watches, on any event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from konverge.errors import ApiError
from konverge.wire import BufferedResponse, ListOptions, Request, Response, WatchOptions
from konverge.wire.list_watch import List, Watch
from model_collection import ModelCollection, bookmark, frame

__all__ = ["LiveCollection"]


class LiveCollection(ModelCollection):
    """Handles requests for the collection. `handle` is for an `InProcessTransport`."""

    def __init__(self, *, offers_streaming: bool = True) -> None:
        super().__init__(offers_streaming=offers_streaming)
        self.changed = asyncio.Event()

    def write(self, name: str) -> None:
        super().write(name)
        self._notify()

    def delete(self, name: str) -> None:
        super().delete(name)
        self._notify()

    def _notify(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    async def handle(self, request: Request) -> Response:
        query = dict(request.query)
        try:
            if query.get("watch"):
                return self._open(query)
            limit, token = int(query.get("limit", "0")), query.get("continue", "")
            return BufferedResponse(200, self.respond(List(ListOptions(limit=limit, continue_=token))))
        except ApiError as error:
            status = {"kind": "Status", "code": error.status, "message": str(error)}
            return BufferedResponse(error.status, json.dumps(status).encode())

    def _open(self, query: dict[str, str]) -> Response:
        initial = "sendInitialEvents" in query
        options = WatchOptions(resource_version=query.get("resourceVersion", ""), send_initial_events=initial)
        first = self.respond(Watch(options))
        if not initial:
            # The model ends each response with a bookmark; a server sends one now and then.
            first = first.removesuffix(bookmark(self.version))
        end = asyncio.get_running_loop().time() + float(query["timeoutSeconds"])
        return _Stream(self, first, end)


class _Stream(BufferedResponse):
    """A watch: the changes so far, and then new ones, until its timeout."""

    def __init__(self, server: LiveCollection, first: bytes, end: float) -> None:
        super().__init__(200)
        self._server = server
        self._first = first
        self._sent = server.version
        self._end = end

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._first:
            yield self._first
        if b'"ERROR"' in self._first:
            return
        for end in (self._end - 2, self._end):
            async for changes in self._changes_until(end):
                yield changes
            if end != self._end:
                yield bookmark(self._server.version)

    async def _changes_until(self, end: float) -> AsyncIterator[bytes]:
        while True:
            changed = self._server.changed  # changes from here on are sent in the next iteration
            changes = [frame(type_, found) for version, type_, found in self._server.history if version > self._sent]
            self._sent = self._server.version
            if changes:
                yield b"".join(changes)
            try:
                async with asyncio.timeout_at(end):
                    await changed.wait()
            except TimeoutError:
                return
