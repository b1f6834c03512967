"""Responses of the API server.

A response has either a complete body or a stream of chunks. It can be read in the same process (it implements
`konverge.wire.messages.Response`), or the HTTP server writes it to a socket.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self, TypeAlias

import msgspec

from konverge.wire.messages import WebSocket
from konverge_cluster.api.bodies import JSON
from konverge_cluster.api.status_errors import StatusError

__all__ = ["Response", "ServeWebSocket", "error_response", "json_response", "text_response", "upgrade_response"]

ServeWebSocket: TypeAlias = Callable[[WebSocket], Coroutine[Any, Any, None]]


class Response:
    """A response: status, headers in lower case, warnings, and a complete or a streamed body.

    A response of status 101 has a function instead that serves the WebSocket to which the request is upgraded.
    """

    __slots__ = ("body", "headers", "status", "stream", "warnings", "websocket")

    def __init__(
        self,
        status: int,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        stream: AsyncGenerator[bytes, None] | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.headers: dict[str, str] = dict(headers) if headers else {}
        self.stream = stream
        self.warnings: tuple[str, ...] = ()
        self.websocket: ServeWebSocket | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the whole body is in memory: no read of it waits."""
        return self.stream is None

    async def read(self) -> bytes:
        """Return the complete body; read a stream to its end."""
        if self.stream is None:
            return self.body
        return b"".join([chunk async for chunk in self.stream])

    def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over the body in chunks."""
        return self.stream if self.stream is not None else _once(self.body)

    async def close(self) -> None:
        """Close the stream; safe to call twice."""
        if self.stream is not None:
            await self.stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def _once(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body


def json_response(status: int, document: Any) -> Response:
    return Response(status, msgspec.json.encode(document) + b"\n", {"content-type": JSON})


def text_response(status: int, text: str) -> Response:
    """Return a plain text response, with the headers of Go's HTTP server."""
    headers = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}
    return Response(status, text.encode(), headers)


def error_response(error: StatusError) -> Response:
    response = json_response(error.code, error.status)
    response.headers.update(error.headers)
    return response


def upgrade_response(protocol: str, serve: ServeWebSocket) -> Response:
    """Return the response that upgrades a request to a WebSocket of a subprotocol."""
    response = Response(101, headers={"sec-websocket-protocol": protocol})
    response.websocket = serve
    return response
