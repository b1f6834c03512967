"""2,000 hostile connections at the webhook port of a pod with 256 MiB: reviews are answered, memory is bounded.

The server runs in a process of its own, so that its memory is measured.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

import webhook_examples
from konverge.webhooks import ServerLimits, Webhooks, WebhookServer
from konverge.webhooks.limits import memory_limit
from webhook_certificates import authority, pair_of
from webhook_examples import admission_review, check, conversion, webapp

pytestmark = pytest.mark.real_time(limit=120)

MIB = 1 << 20
POD = 256 * MIB
JSON = {"Content-Type": "application/json"}
CHUNK = b" " * MIB


def peak_memory() -> int:
    """Return the peak of this program; that of getrusage includes the program before exec."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


async def serve() -> None:
    server = WebhookServer(
        Webhooks(check, conversion), host="127.0.0.1", port=0, limits=ServerLimits.within(POD), grace=0.1
    )
    server.set_certificate(pair_of(authority()))
    async with server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    sys.stdout.write(str(peak_memory()))


class Served:
    """The server in its process."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self.port = port

    async def peak_memory(self) -> int:
        out, _ = await self._process.communicate(b"")
        return int(out)


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(webhook_examples.__file__).parent)},
    )
    try:
        assert process.stdout is not None
        yield Served(process, int(await process.stdout.readline()))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def hostile_body(port: int) -> AsyncIterator[None]:
    """Send most of a conversion review of 60 MiB, as far as the server reads it."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=_any_certificate())
    head = f"POST {conversion.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"

    async def send() -> None:
        with suppress(OSError):
            writer.write(f"{head}Content-Length: {60 * MIB}\r\n\r\n".encode())
            for _ in range(59):
                writer.write(CHUNK)
                await writer.drain()

    sending = asyncio.ensure_future(send())
    yield
    sending.cancel()
    writer.transport.abort()


def open_hostile(port: int, count: int) -> list[socket.socket]:
    """Open connections, of which every second begins a TLS handshake."""
    opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    for connection in opened[::2]:
        connection.send(b"\x16\x03\x01\x02\x00\x01")
    return opened


def _any_certificate() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_reviews_are_answered_and_memory_is_bounded() -> None:
    async with served() as server:
        statuses = []
        async with (
            AsyncExitStack() as stack,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False, force_close=True)) as session,
        ):
            for _ in range(4):
                await stack.enter_async_context(hostile_body(server.port))
            for _ in range(10):
                for connection in await asyncio.to_thread(open_hostile, server.port, 200):
                    stack.enter_context(connection)
                url = f"https://127.0.0.1:{server.port}{check.path}"
                async with session.post(url, data=admission_review(webapp()), headers=JSON) as response:
                    statuses.append(response.status)
        peak = await server.peak_memory()

    assert statuses == [200] * 10
    assert peak < POD * 3 // 4


@pytest.mark.parametrize(
    ("memory", "buffered", "connections", "waiting"),
    [
        (None, 256 * MIB, 1000, 250),
        (POD, 32 * MIB, 256, 64),
        (1 << 34, 256 * MIB, 1000, 250),
        (64 * MIB, 14 * MIB, 64, 32),
    ],
)
def test_limits_follow_the_memory_of_the_container(
    memory: int | None, buffered: int, connections: int, waiting: int
) -> None:
    limits = ServerLimits.within(memory)

    assert (limits.buffered, limits.connections, limits.waiting) == (buffered, connections, waiting)
    assert limits.conversion_body <= limits.buffered


@pytest.mark.parametrize(
    ("text", "limit"), [("268435456\n", POD), ("max\n", None), ("9223372036854771712\n", None), (None, None)]
)
def test_the_memory_of_the_container_is_read_from_its_control_group(
    tmp_path: Path, text: str | None, limit: int | None
) -> None:
    file = tmp_path / "memory.max"
    if text is not None:
        file.write_text(text)

    assert memory_limit((file,)) == limit


if __name__ == "__main__":
    asyncio.run(serve())
