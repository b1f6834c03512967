"""Responses that are late or lost, after the server has processed the request."""

from __future__ import annotations

import asyncio
from random import Random

from konverge.errors import TransportError
from konverge.wire.messages import Request, Response, Transport

__all__ = ["LateResponses"]


class LateResponses:
    """A transport that delays requests and responses at random, and loses some responses.

    Each direction takes up to `by` seconds. The server processes every write, and a share of `lost` of their responses
    is lost; reads are never lost, and requests for events are not changed.
    """

    def __init__(self, inner: Transport, random: Random, *, by: float, lost: float) -> None:
        self._inner = inner
        self._random = random
        self._by = by
        self._lost = lost

    async def send(self, request: Request) -> Response:
        if "events" in request.path:
            return await self._inner.send(request)
        await asyncio.sleep(self._random.uniform(0, self._by))
        response = await self._inner.send(request)
        return response if request.method == "GET" else await self._delayed_response(request, response)

    async def close(self) -> None:
        await self._inner.close()

    async def _delayed_response(self, request: Request, response: Response) -> Response:
        await asyncio.sleep(self._random.uniform(0, self._by))
        if self._random.random() >= self._lost:
            return response
        await response.close()
        raise TransportError(f"{request.method} {request.path}: the response was lost")
