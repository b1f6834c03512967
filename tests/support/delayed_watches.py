"""Delayed watches: their data arrives a number of seconds after the server sent it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Self

from konverge.wire.messages import Request, Response, Transport

__all__ = ["DelayedWatches"]


class DelayedWatches:
    """A transport that delays the watches of some collections, and nothing else.

    If `by` is a function, it returns the delay of each chunk; the order of the chunks stays.
    """

    def __init__(self, inner: Transport, *collections: str, by: float | Callable[[], float]) -> None:
        self._inner = inner
        self._collections = collections
        self._by = by if callable(by) else lambda: by

    async def send(self, request: Request) -> Response:
        response = await self._inner.send(request)
        watches = ("watch", "true") in request.query or ("watch", "1") in request.query
        if watches and request.path.rpartition("/")[2] in self._collections:
            return _DelayedResponse(response, self._by)
        return response

    async def close(self) -> None:
        await self._inner.close()


class _DelayedResponse:
    def __init__(self, inner: Response, by: Callable[[], float]) -> None:
        self._inner = inner
        self._by = by
        self.status: int = inner.status
        self.headers: Mapping[str, str] = inner.headers
        self.warnings: tuple[str, ...] = inner.warnings

    async def read(self) -> bytes:
        return await self._inner.read()

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner.chunks():
            await asyncio.sleep(self._by())
            yield chunk

    async def close(self) -> None:
        await self._inner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
