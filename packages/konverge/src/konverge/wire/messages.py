"""Requests, responses and transports: the interface between a client and an API server.

The client sends requests through a `Transport`. One transport uses HTTP over sockets, another calls an API server
object in the same process; client and server see no difference. Rules:

1. Header names are lower case.
2. The body of a response is a stream. The receiver of a response closes it (`async with`), read or not.
3. A transport raises `TransportError` without a complete response, and never an exception of its HTTP library.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from msgspec import Struct

__all__ = [
    "BufferedResponse",
    "Request",
    "Response",
    "SocketTransport",
    "Transport",
    "WebSocket",
    "WebSocketTransport",
]


class Request(Struct, frozen=True):
    """A request: `path` is unescaped (`/api/v1/namespaces/shop/pods`), `query` is ordered and may repeat names.

    `timeout` is how long the client waits for the headers and, unless `stream` is set, for the whole body. A transport
    that sends bytes calls `before_write` right before it does: what it raises ends the request, and nothing is sent.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = {}
    extra_headers: tuple[tuple[str, str], ...] = ()  # names may repeat: Impersonate-Group does
    body: bytes = b""
    timeout: float | None = None
    stream: bool = False
    before_write: Callable[[], object] | None = None

    def __repr__(self) -> str:
        # Bodies and header fields may contain Secrets.
        return f"Request({self.method!r}, {self.path!r}, query={self.query!r}, timeout={self.timeout!r})"


class Response(Protocol):
    """A response: status and headers have arrived, the body is a stream."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """The values of all `Warning` headers, in order."""
        ...

    async def read(self) -> bytes:
        """Return the whole body, within the size limit of the transport."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over the body in chunks of any size, as it arrives."""
        ...

    async def close(self) -> None:
        """Release the connection; safe to call twice and in the middle of a body."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(slots=True)
class BufferedResponse:
    """A response with its whole body in memory, for API servers in the same process and for tests."""

    status: int
    body: bytes = field(default=b"", repr=False)  # bodies may contain Secrets
    headers: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    async def read(self) -> bytes:
        """Return the whole body."""
        return self.body

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as one chunk; an empty body has none."""
        if self.body:
            yield self.body

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class Transport(Protocol):
    """A transport to an API server."""

    async def send(self, request: Request) -> Response:
        """Send a request and return when the headers of its response have arrived.

        Raises: TransportError without a response: refused, cut, timed out, TLS.
        """
        ...

    async def close(self) -> None:
        """Close all connections; responses that are still open are aborted."""
        ...


@runtime_checkable
class SocketTransport(Transport, Protocol):
    """A transport over sockets: another event loop can have a copy of it."""

    def copy(self) -> Transport:
        """Return a new transport to the same server, with connections of its own."""
        ...


@runtime_checkable
class WebSocket(Protocol):
    """A connection of binary messages in both directions. `protocol` is the subprotocol that the server chose."""

    @property
    def protocol(self) -> str: ...

    async def send(self, message: bytes) -> None:
        """Send a message; wait while the peer does not read.

        Raises: TransportError when the connection is closed or cut.
        """
        ...

    async def receive(self) -> bytes | None:
        """Return the next message, None when the peer has closed the connection.

        Raises: TransportError when the connection is cut.
        """
        ...

    async def close(self) -> None:
        """Close the connection; safe to call twice."""
        ...


@runtime_checkable
class WebSocketTransport(Transport, Protocol):
    """A transport that can also open WebSockets."""

    async def open_websocket(self, request: Request, protocols: tuple[str, ...]) -> WebSocket | Response:
        """Upgrade a request to one of the subprotocols; return the response if the server refuses.

        Raises: TransportError without a response.
        """
        ...
