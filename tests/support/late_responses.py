"""Answers that are late or lost: what the server did is known only after a while, or not at all."""

from __future__ import annotations

import asyncio
from random import Random

from konverge.errors import TransportError
from konverge.wire.messages import Request, Response, Transport

__all__ = ["LateAnswers"]


class LateAnswers:
    """A transport on which dice decide when a request arrives, when its answer does, and whether it does.

    Each way takes up to `by` seconds. Of the writes a share of `lost` is done by the server, and nobody learns of it;
    reads are never lost, and events are left alone.
    """

    def __init__(self, inner: Transport, dice: Random, *, by: float, lost: float) -> None:
        self._inner = inner
        self._dice = dice
        self._by = by
        self._lost = lost

    async def send(self, request: Request) -> Response:
        if "events" in request.path:
            return await self._inner.send(request)
        await asyncio.sleep(self._dice.uniform(0, self._by))
        response = await self._inner.send(request)
        return response if request.method == "GET" else await self._answered(request, response)

    async def close(self) -> None:
        await self._inner.close()

    async def _answered(self, request: Request, response: Response) -> Response:
        await asyncio.sleep(self._dice.uniform(0, self._by))
        if self._dice.random() >= self._lost:
            return response
        await response.close()
        raise TransportError(f"{request.method} {request.path}: the answer was lost")
