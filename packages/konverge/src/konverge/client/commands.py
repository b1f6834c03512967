"""Commands in containers: `pods/exec` over a WebSocket with channels."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from konverge.client.caller import Caller, RequestInfo
from konverge.errors import DecodeError, TransportError
from konverge.wire import (
    V4_CHANNELS,
    V5_CHANNELS,
    Channel,
    Query,
    Request,
    WebSocket,
    error_from_response,
    exit_code,
    pack_message,
    unpack_message,
)

__all__ = ["OUTPUT_LIMIT", "ExecResult", "exec_query", "run_command"]

OUTPUT_LIMIT: Final = 16 << 20
_STDIN_BYTES: Final = 32 << 10


class ExecResult(Struct, frozen=True):
    """What a command wrote, and its exit code."""

    stdout: bytes
    stderr: bytes
    exit_code: int


def exec_query(command: Sequence[str], container: str, *, stdin: bool) -> Query:
    """Return the query of a command."""
    options = [("container", container)] if container else []
    streams = ("stdin", "stdout", "stderr") if stdin else ("stdout", "stderr")
    return (*options, *((name, "true") for name in streams), *(("command", word) for word in command))


async def run_command(
    caller: Caller, request: Request, info: RequestInfo, stdin: bytes | None, *, limit: int
) -> ExecResult:
    """Run a command and return its result; the connection is closed at the end.

    Raises: as `Client.exec`.
    """
    request = caller.limit_write(request, info)
    # Only v5 can close the standard input.
    protocols = (V5_CHANNELS, V4_CHANNELS) if stdin is None else (V5_CHANNELS,)
    try:
        async with asyncio.timeout(request.timeout):
            websocket = await caller.open_websocket(request, info, protocols)
            try:
                if websocket.protocol not in protocols:
                    raise TransportError(f"{info}: the server does not support {' or '.join(protocols)}")
                return await _Session(websocket, info, limit).run(stdin)
            finally:
                await websocket.close()
    except TimeoutError:
        raise TransportError(f"{info}: it was not done within {request.timeout:g} s") from None


class _Session:
    """One command that runs."""

    def __init__(self, websocket: WebSocket, info: RequestInfo, limit: int) -> None:
        self._websocket = websocket
        self._info = info
        self._limit = limit
        self._size = 0
        self._output: dict[Channel, list[bytes]] = {Channel.STDOUT: [], Channel.STDERR: []}

    async def run(self, stdin: bytes | None) -> ExecResult:
        sending = asyncio.ensure_future(self._send(stdin or b"")) if stdin is not None else None
        try:
            code = await self._receive()
        finally:
            if sending is not None:
                sending.cancel()
                with suppress(asyncio.CancelledError, TransportError):  # a command may end before it has read all
                    await sending
        stdout, stderr = (b"".join(parts) for parts in self._output.values())
        return ExecResult(stdout, stderr, code)

    async def _send(self, stdin: bytes) -> None:
        for start in range(0, len(stdin), _STDIN_BYTES):
            await self._websocket.send(pack_message(Channel.STDIN, stdin[start : start + _STDIN_BYTES]))
        await self._websocket.send(pack_message(Channel.CLOSE, bytes((Channel.STDIN,))))

    async def _receive(self) -> int:
        while (message := await self._websocket.receive()) is not None:
            channel, content = unpack_message(message)
            if channel is Channel.ERROR and content:
                return self._exit_code(content)
            if channel in self._output:
                self._add(channel, content)
        raise TransportError(f"{self._info}: the connection was closed before the command ended")

    def _add(self, channel: Channel, content: bytes) -> None:
        self._size += len(content)
        if self._size > self._limit:
            raise DecodeError(f"{self._info}: the output is longer than {self._limit} bytes (increase output_limit)")
        self._output[channel].append(content)

    def _exit_code(self, status: bytes) -> int:
        code = exit_code(status)
        if code is None:
            # A Status on a channel has no kind.
            document = {"kind": "Status", "apiVersion": "v1", **msgspec.json.decode(status)}
            number, info, body = document.get("code"), self._info, msgspec.json.encode(document)
            http_status = number if isinstance(number, int) and number >= 400 else 500
            raise error_from_response(http_status, {}, body, verb=info.verb, kind=info.kind, key=info.key)
        return code
