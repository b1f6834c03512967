"""To an API server in the same process, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self, TypeVar

from konverge.errors import TransportError
from konverge.wire.messages import Request, Response

__all__ = ["InProcessTransport"]

T = TypeVar("T")


class InProcessTransport:
    """A transport that calls the server: `handle` gets each request as it was made and gives the answer.

    Promises: nothing else happens between the two, so it works on any event loop, that of virtual time included. A
    request's timeout holds for `handle` and, unless it is a stream, for the reading of the body. What `handle` raises
    comes through unchanged. There is no connection that could die in silence (`can_stall`).
    """

    can_stall = False

    def __init__(self, handle: Callable[[Request], Awaitable[Response]]) -> None:
        self._handle = handle
        self._closed = False

    async def send(self, request: Request) -> Response:
        """Call the server."""
        if self._closed:
            raise TransportError(f"{request.method} {request.path}: the transport is closed", sent=False)
        if request.timeout is None:
            return await self._handle(request)
        end = asyncio.get_running_loop().time() + request.timeout
        try:
            async with asyncio.timeout_at(end) as limit:
                response = await self._handle(request)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise _late(request, "no answer") from error
        return response if request.stream else _TimedResponse(response, request, end)

    async def close(self) -> None:
        """Refuse all further requests."""
        self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _TimedResponse:
    """An answer whose body must be read before the request's deadline."""

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
        pieces = aiter(self._inner.chunks())
        while (piece := await self._within(anext(pieces, None))) is not None:
            yield piece

    async def close(self) -> None:
        await self._inner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _within(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout_at(self._end) as limit:
                return await work
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise _late(self._request, "no complete answer") from error


def _late(request: Request, what: str) -> TransportError:
    return TransportError(f"{request.method} {request.path}: {what} within {request.timeout:g} s")
