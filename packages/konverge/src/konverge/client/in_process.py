"""The transport to an API server in the same process, without a socket."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, TypeVar

from msgspec.structs import replace

from konverge.errors import TransportError
from konverge.wire.messages import Request, Response, WebSocket

__all__ = ["InProcessTransport"]

T = TypeVar("T")

ServeWebSocket: TypeAlias = Callable[[WebSocket], Coroutine[Any, Any, None]]
"""Serves a connection that the server has upgraded, until one side closes it."""

_PENDING_MESSAGES: Final = 8


class InProcessTransport:
    """A transport that passes each request to `handle` and returns its response.

    Promises: it does nothing else, so it works on any event loop, including virtual time. A request's timeout covers
    `handle` and, unless the request is a stream, the reading of the body. Exceptions of `handle` are not changed. There
    is no connection that could stall (`can_stall`).
    """

    can_stall = False

    def __init__(self, handle: Callable[[Request], Awaitable[Response]]) -> None:
        self._handle = handle
        self._closed = False

    async def send(self, request: Request) -> Response:
        """Pass the request to the server."""
        if self._closed:
            raise TransportError(f"{request.method} {request.path}: the transport is closed", sent=False)
        if request.timeout is None:
            return await self._handle(request)
        end = asyncio.get_running_loop().time() + request.timeout
        limit = asyncio.timeout_at(end)
        try:
            async with limit:
                response = await self._handle(request)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise _timeout_error(request, "no response") from error
        if request.stream or getattr(response, "is_complete", False):
            return response
        return _TimedResponse(response, request, end)

    async def open_websocket(self, request: Request, protocols: tuple[str, ...]) -> WebSocket | Response:
        """Upgrade a request to one of the subprotocols; return the response if the server refuses."""
        upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-protocol": ", ".join(protocols)}
        response = await self.send(replace(request, stream=True, headers={**request.headers, **upgrade}))
        serve: ServeWebSocket | None = getattr(response, "websocket", None)
        if serve is None:
            return response
        return _Connection(serve, response.headers.get("sec-websocket-protocol", "")).client

    async def close(self) -> None:
        """Reject all further requests."""
        self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _TimedResponse:
    """A response whose body must be read before the request's deadline."""

    def __init__(self, inner: Response, request: Request, end: float) -> None:
        self._inner = inner
        self._request = request
        self._end = end
        self.status: int = inner.status
        self.headers: Mapping[str, str] = inner.headers
        self.warnings: tuple[str, ...] = inner.warnings

    async def read(self) -> bytes:
        return await self._within(self._inner.read())

    async def chunks(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._inner.chunks())
        while (chunk := await self._within(anext(chunks, None))) is not None:
            yield chunk

    async def close(self) -> None:
        await self._inner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _within(self, work: Awaitable[T]) -> T:
        limit = asyncio.timeout_at(self._end)
        try:
            async with limit:
                return await work
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise _timeout_error(self._request, "no complete response") from error


class _Connection:
    """A WebSocket inside of this process. It is cut, as a socket is, when the server fails or a side closes it."""

    def __init__(self, serve: ServeWebSocket, protocol: str) -> None:
        to_server, to_client = _Messages(), _Messages()
        self._serve = serve
        self._directions = (to_server, to_client)
        self.client = _Side(self, protocol, to_server, to_client)
        self._task = asyncio.get_running_loop().create_task(self._run(_Side(self, protocol, to_client, to_server)))

    async def _run(self, server: _Side) -> None:
        try:
            await self._serve(server)
        finally:
            await self._end()

    async def _end(self) -> None:
        for direction in self._directions:
            await direction.close()

    async def close(self) -> None:
        """Close both directions, and wait until the server has ended."""
        await self._end()
        if self._task is not asyncio.current_task():
            self._task.cancel()
            await asyncio.wait([self._task])


class _Messages:
    """The messages in one direction; the sender waits while too many of them are unread."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._closed = False
        self._changed = asyncio.Condition()

    async def put(self, message: bytes) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._closed or len(self._waiting) < _PENDING_MESSAGES)
            if self._closed:
                raise TransportError("the connection is closed")
            self._waiting.append(message)
            self._changed.notify_all()

    async def get(self) -> bytes | None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._closed or bool(self._waiting))
            self._changed.notify_all()
            return self._waiting.popleft() if self._waiting else None

    async def close(self) -> None:
        async with self._changed:
            self._closed = True
            self._changed.notify_all()


@dataclasses.dataclass
class _Side:
    """One side of a connection."""

    connection: _Connection
    protocol: str
    outgoing: _Messages
    incoming: _Messages

    async def send(self, message: bytes) -> None:
        await self.outgoing.put(message)

    async def receive(self) -> bytes | None:
        return await self.incoming.get()

    async def close(self) -> None:
        await self.connection.close()


def _timeout_error(request: Request, what: str) -> TransportError:
    return TransportError(f"{request.method} {request.path}: {what} within {request.timeout:g} s")
