"""A transport that injects the faults of a script before another transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from konverge.errors import TransportError
from konverge.testing.faults import End, Fault, FaultScript, RecordedRequest
from konverge.wire.messages import BufferedResponse, Request, Response, Transport

__all__ = ["FaultTransport"]


class FaultTransport:
    """Forwards requests as the script allows. It works on any event loop, also in virtual time.

    `pause_streams`, `reset_streams` and `close_streams` act on the responses being read at that moment, not on later
    ones.
    """

    def __init__(self, inner: Transport, script: FaultScript | None = None) -> None:
        self.script = script or FaultScript()
        self._inner = inner
        self._open: dict[_FaultResponse, None] = {}  # in the order of opening, so that a script is reproducible

    async def send(self, request: Request) -> Response:
        """Send a request, with the fault that the script chooses for it."""
        return await self.send_recorded(request, RecordedRequest.of(request))

    async def send_recorded(self, request: Request, recorded: RecordedRequest) -> Response:
        """Do as `send`; the log of the script gets `recorded`."""
        fault = self.script.choose(recorded)
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.refused:
            raise TransportError(f"{request.method} {request.path}: refused by the script")
        if fault.status:
            inner: Response = BufferedResponse(fault.status, fault.body, fault.headers)
        else:
            inner = await self._inner.send(request)
        return _FaultResponse(inner, fault, self._open)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()

    @property
    def streams(self) -> int:
        """How many responses are being read."""
        return len(self._open)

    def pause_streams(self) -> int:
        """Deliver nothing more of the responses being read; return their number."""
        return self._end_all(End.PAUSED)

    def reset_streams(self) -> int:
        """Reset the connections of the responses being read; return their number."""
        return self._end_all(End.RESET)

    def close_streams(self) -> int:
        """End the responses being read cleanly, wherever they are; return their number."""
        return self._end_all(End.CLEAN)

    def _end_all(self, end: End) -> int:
        responses = list(self._open)
        for response in responses:
            response.end_now(end)
        return len(responses)


class _FaultResponse:
    """A response with a fault applied."""

    def __init__(self, inner: Response, fault: Fault, registry: dict[_FaultResponse, None]) -> None:
        self._inner = inner
        self._fault = fault
        self._registry = registry
        self._end: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._chunk: asyncio.Task[bytes | None] | None = None
        self.status: int = inner.status
        self.headers: Mapping[str, str] = inner.headers
        self.warnings: tuple[str, ...] = inner.warnings
        self._chunks = self._generate()
        registry[self] = None

    def end_now(self, end: End) -> None:
        """End the body now, in that way."""
        if not self._end.done():
            self._end.set_result(end)

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    def chunks(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def close(self) -> None:
        self._registry.pop(self, None)
        if self._chunk is not None:
            self._chunk.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._chunk
            self._chunk = None
        await self._chunks.aclose()
        await self._inner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _generate(self) -> AsyncGenerator[bytes]:
        fault, remaining = self._fault, self._fault.keep
        chunks = aiter(self._inner.chunks())
        if fault.before:
            yield fault.before
        end = End.UPSTREAM
        while remaining is None or remaining > 0:
            chunk = await self._next(chunks)
            if not isinstance(chunk, bytes):
                end = chunk
                break
            chunk = fault.rewrite(chunk) if fault.rewrite else chunk
            chunk = chunk if remaining is None else chunk[:remaining]
            remaining = None if remaining is None else remaining - len(chunk)
            yield chunk
        if end is End.UPSTREAM:
            if fault.after:
                yield fault.after
            end = fault.end
        await _finish(end)

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | End:
        """Wait for the next chunk, or for a call of `end_now`."""
        if self._chunk is None:
            self._chunk = asyncio.ensure_future(_next_or_none(chunks))
        waiting: set[asyncio.Future[Any]] = {self._chunk, self._end}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self._end.done():
            return self._end.result()
        chunk, self._chunk = self._chunk.result(), None
        return End.UPSTREAM if chunk is None else chunk


async def _finish(end: End) -> None:
    if end is End.RESET:
        raise TransportError("the response was reset by the script")
    if end is End.PAUSED:
        await asyncio.get_running_loop().create_future()


async def _next_or_none(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)
