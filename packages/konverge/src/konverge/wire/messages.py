"""Requests and responses as values: the seam between those who ask and those who answer.

The client asks through a `Transport`. One transport speaks HTTP over sockets, another calls an API server object in the
same process; neither side can tell. Rules that hold here:

1. Header names are lower case.
2. A response's body is a stream. Whoever gets a response closes it (`async with`), read or not.
3. A transport raises `TransportError` when no complete answer came, and never anything of its HTTP library.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

__all__ = ["BufferedResponse", "Request", "Response", "Transport"]


@dataclass(frozen=True, slots=True)
class Request:
    """One request: `path` is unescaped (`/api/v1/namespaces/shop/pods`), `query` keeps its order and may repeat names.

    `timeout` is how long the caller waits for the headers and, except when `stream` is set, for the whole body.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    extra_headers: tuple[tuple[str, str], ...] = ()  # names may repeat: Impersonate-Group does
    body: bytes = field(default=b"", repr=False)  # bodies hold Secrets
    timeout: float | None = None
    stream: bool = False


class Response(Protocol):
    """The answer: status and headers are here, the body is on its way."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """The values of all `Warning` headers, in order, as they came."""
        ...

    async def read(self) -> bytes:
        """Read the whole body, within the transport's size limit."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Read the body piece by piece, cut anywhere, as it arrives."""
        ...

    async def close(self) -> None:
        """Let go of the connection; safe to call twice and in the middle of a body."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(slots=True)
class BufferedResponse:
    """An answer whose whole body is at hand: what an API server in the same process gives, and what tests give."""

    status: int
    body: bytes = field(default=b"", repr=False)  # bodies hold Secrets
    headers: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    async def read(self) -> bytes:
        """Give the whole body."""
        return self.body

    async def chunks(self) -> AsyncIterator[bytes]:
        """Give the body in one piece; an empty one has no pieces."""
        if self.body:
            yield self.body

    async def close(self) -> None:
        """Nothing is held."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class Transport(Protocol):
    """A way to an API server."""

    async def send(self, request: Request) -> Response:
        """Send a request and wait for the headers of its answer.

        Raises: TransportError when there is no answer: refused, cut, timed out, TLS.
        """
        ...

    async def close(self) -> None:
        """Close all connections; responses that are still open are cut."""
        ...
