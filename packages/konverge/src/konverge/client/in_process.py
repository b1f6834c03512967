"""The transport to an API server in the same process, without a socket."""

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
        return response if request.stream else _TimedResponse(response, request, end)

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


def _timeout_error(request: Request, what: str) -> TransportError:
    return TransportError(f"{request.method} {request.path}: {what} within {request.timeout:g} s")
