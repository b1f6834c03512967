"""The health check of gRPC against servers that answer, refuse, pad, ping and break off.

`tests/processes/test_local_images.py` asks a real server.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from konverge_cluster.processes.probes import Answer, run_handler

pytestmark = pytest.mark.real_time

DATA, HEADERS, RESET, SETTINGS, PING, GO_AWAY = 0, 1, 3, 4, 6, 7
ACK = END = 1
END_HEADERS, PADDED = 4, 8
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def message(status: bytes) -> bytes:
    return struct.pack(">BI", 0, len(status)) + status


async def read_frames(reader: asyncio.StreamReader, count: int) -> list[tuple[int, int, int, bytes]]:
    frames = []
    for _ in range(count):
        length, kind, flags, stream = struct.unpack(">IBBI", b"\0" + await reader.readexactly(9))
        frames.append((kind, flags, stream, await reader.readexactly(length)))
    return frames


async def read_call(reader: asyncio.StreamReader) -> list[tuple[int, int, int, bytes]]:
    assert await reader.readexactly(24) == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    return await read_frames(reader, 3)


@dataclass
class Target:
    address: str = "127.0.0.1"

    def port(self, port: int | str) -> int:
        return int(port)

    async def execute(self, command: list[str]) -> tuple[int, str]:
        raise AssertionError(command)


@asynccontextmanager
async def serving(serve: Serve) -> AsyncGenerator[int]:
    """Serve each connection with a function; wait until all of them are closed."""
    tasks = set[asyncio.Task[None]]()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(handle(reader, writer)))

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
    async with asyncio.timeout(30):
        await asyncio.gather(*tasks)


def answers(*frames: bytes) -> Serve:
    """Return a server that reads the call and answers with frames."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_call(reader)
        writer.write(frame(SETTINGS, 0, 0) + b"".join(frames))
        await writer.drain()
        await reader.read()

    return serve


async def probe(serve: Serve, timeout: float = 30.0, **call: Any) -> Answer:
    async with serving(serve) as port:
        return await run_handler({"grpc": {"port": port, **call}}, Target(), timeout=timeout)


HEAD = frame(HEADERS, END_HEADERS, 1, b"\x88")
TRAILERS = frame(HEADERS, END_HEADERS | END, 1, b"\x88")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (b"\x08\x01", Answer(True)),
        (b"\x08\x02", Answer(False, 'service unhealthy (responded with "NOT_SERVING")')),
        (b"", Answer(False, 'service unhealthy (responded with "UNKNOWN")')),
        (b"\x08\x03", Answer(False, 'service unhealthy (responded with "SERVICE_UNKNOWN")')),
    ],
)
async def test_the_status_decides(status: bytes, expected: Answer) -> None:
    assert await probe(answers(HEAD, frame(DATA, 0, 1, message(status)), TRAILERS)) == expected


async def test_a_message_may_be_split_padded_and_between_other_frames() -> None:
    whole = message(b"\x08\x01")
    parts = [frame(DATA, PADDED, 1, b"\x03" + whole[:2] + bytes(3)), frame(DATA, 0, 1, whole[2:])]

    found = await probe(answers(HEAD, frame(DATA, 0, 3, b"other"), *parts, frame(8, 0, 0, bytes(4)), TRAILERS))

    assert found == Answer(True)


async def test_settings_and_pings_are_acknowledged() -> None:
    received = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_call(reader)
        writer.write(frame(SETTINGS, 0, 0) + frame(PING, 0, 0, b"12345678") + frame(SETTINGS, ACK, 0))
        received.extend(await read_frames(reader, 2))
        writer.write(HEAD + frame(DATA, END, 1, message(b"\x08\x01")))
        await reader.read()

    assert await probe(serve) == Answer(True)
    assert received == [(SETTINGS, ACK, 0, b""), (PING, ACK, 0, b"12345678")]


@pytest.mark.parametrize("end", [TRAILERS, frame(RESET, 0, 1, bytes(4)), frame(GO_AWAY, 0, 0, bytes(8))])
async def test_a_server_without_the_service_fails(end: bytes) -> None:
    found = await probe(answers(end), service="shop")

    assert found == Answer(False, 'health rpc failed: no status of service "shop" (grpc.health.v1.Health)')


async def test_a_broken_connection_and_another_protocol_fail() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_call(reader)

    async def speak_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_call(reader)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()

    assert await probe(hang_up) == Answer(False, "the server closed the connection")
    assert await probe(speak_http) == Answer(False, "the server does not answer in HTTP/2")


async def test_a_server_that_does_not_answer_times_out() -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    assert await probe(wait, timeout=0.1) == Answer(False, "context deadline exceeded")


@pytest.mark.parametrize("service", ["", "shop", "s" * 300])
async def test_the_service_is_asked_for(service: str) -> None:
    calls = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.extend(await read_call(reader))
        writer.write(frame(DATA, END, 1, message(b"\x08\x01")))
        await reader.read()

    assert await probe(serve, service=service) == Answer(True)
    assert [(kind, flags, stream) for kind, flags, stream, _ in calls] == [
        (SETTINGS, 0, 0),
        (HEADERS, END_HEADERS, 1),
        (DATA, END, 1),
    ]
    length = {0: b"", 4: b"\x0a\x04", 300: b"\x0a\xac\x02"}[len(service)]
    assert calls[2][3] == message(length + service.encode())
    assert b"/grpc.health.v1.Health/Check" in calls[1][3]
