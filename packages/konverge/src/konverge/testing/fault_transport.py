"""A transport that plays a script of faults on the way to another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from konverge.errors import TransportError
from konverge.testing.faults import Asked, End, Fault, FaultScript
from konverge.wire.messages import BufferedResponse, Request, Response, Transport

__all__ = ["FaultyTransport"]


class FaultyTransport:
    """Sends requests on as the script allows. Works on any event loop, that of virtual time included.

    `freeze_streams` and `cut_streams` act on the answers that are being read at that moment, not on later ones.
    """

    def __init__(self, inner: Transport, script: FaultScript | None = None) -> None:
        self.script = script or FaultScript()
        self._inner = inner
        self._open: dict[_FaultyResponse, None] = {}  # in the order of their opening: a script replays exactly

    async def send(self, request: Request) -> Response:
        """Do to the request what the script says."""
        return await self.play(request, Asked.of(request))

    async def play(self, request: Request, asked: Asked) -> Response:
        """Do as `send`, to a request that is noted as `asked`."""
        fault = self.script.choose(asked)
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.refused:
            raise TransportError(f"{request.method} {request.path}: refused by the script")
        if fault.status:
            inner: Response = BufferedResponse(fault.status, fault.body, fault.headers)
        else:
            inner = await self._inner.send(request)
        return _FaultyResponse(inner, fault, self._open)

    async def close(self) -> None:
        """Close the transport behind this one."""
        await self._inner.close()

    @property
    def streams(self) -> int:
        """How many answers are being read."""
        return len(self._open)

    def freeze_streams(self) -> int:
        """Let nothing more through of what is being read now; gives how many that are."""
        return self._tell(End.FROZEN)

    def cut_streams(self) -> int:
        """Break off what is being read now; gives how many that are."""
        return self._tell(End.CUT)

    def end_streams(self) -> int:
        """End in order what is being read now, wherever it is; gives how many that are."""
        return self._tell(End.CLEAN)

    def _tell(self, end: End) -> int:
        told = list(self._open)
        for response in told:
            response.tell(end)
        return len(told)


class _FaultyResponse:
    """An answer as the fault leaves it."""

    def __init__(self, inner: Response, fault: Fault, opened: dict[_FaultyResponse, None]) -> None:
        self._inner = inner
        self._fault = fault
        self._opened = opened
        self._told: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._piece: asyncio.Task[bytes | None] | None = None
        self.status: int = inner.status
        self.headers: Mapping[str, str] = inner.headers
        self.warnings: tuple[str, ...] = inner.warnings
        self._chunks = self._play()
        opened[self] = None

    def tell(self, end: End) -> None:
        """End the body so, now."""
        if not self._told.done():
            self._told.set_result(end)

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.chunks()])

    def chunks(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def close(self) -> None:
        self._opened.pop(self, None)
        if self._piece is not None:
            self._piece.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._piece
            self._piece = None
        await self._chunks.aclose()
        await self._inner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _play(self) -> AsyncGenerator[bytes]:
        fault, left = self._fault, self._fault.keep
        pieces = aiter(self._inner.chunks())
        if fault.before:
            yield fault.before
        end = End.ITS_OWN
        while left is None or left > 0:
            piece = await self._next(pieces)
            if not isinstance(piece, bytes):
                end = piece
                break
            piece = fault.rewrite(piece) if fault.rewrite else piece
            piece = piece if left is None else piece[:left]
            left = None if left is None else left - len(piece)
            yield piece
        if end is End.ITS_OWN:
            if fault.after:
                yield fault.after
            end = fault.end
        await _finish(end)

    async def _next(self, pieces: AsyncIterator[bytes]) -> bytes | End:
        """Wait for the next piece, or for being told to end."""
        if self._piece is None:
            self._piece = asyncio.ensure_future(_one(pieces))
        waited: set[asyncio.Future[Any]] = {self._piece, self._told}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if self._told.done():
            return self._told.result()
        piece, self._piece = self._piece.result(), None
        return End.ITS_OWN if piece is None else piece


async def _finish(end: End) -> None:
    if end is End.CUT:
        raise TransportError("the answer was cut by the script")
    if end is End.FROZEN:
        await asyncio.get_running_loop().create_future()


async def _one(pieces: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pieces, None)
