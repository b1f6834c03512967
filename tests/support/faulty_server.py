"""A tiny HTTP server that does exactly what a test tells it, also what no server should do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Asked:
    """One request as it came over the wire; header names are lower case, `connection` counts from 1."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int
    client: str
    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader

    def header(self, name: str) -> str | None:
        return ", ".join(value for key, value in self.headers if key == name) or None

    async def answer(self, status: int = 200, body: bytes = b"{}", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers, "", ""]
        await self.write("\r\n".join(lines).encode() + body)

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def cut(self) -> None:
        """Close the connection, with a reset and without goodbye."""
        self.writer.transport.abort()


Handler = Callable[[Asked], Awaitable[None]]


@dataclass
class FaultyServer:
    """What `serving` lends: where it listens, and all that was asked."""

    handler: Handler
    scheme: str = "http"
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while (asked := await _read_request(reader, writer, number)) is not None:
                self.asked.append(asked)
                await self.handler(asked)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def serving(handler: Handler, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[FaultyServer]:
    """Serve on a free port of the loopback until the block ends; then every connection is cut."""
    lent = FaultyServer(handler, "https" if tls else "http")
    server = await asyncio.start_server(lent.connected, "127.0.0.1", 0, ssl=tls)
    lent.port = server.sockets[0].getsockname()[1]
    try:
        yield lent
    finally:
        server.close()
        await lent.stop()
        await server.wait_closed()


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> Asked | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, OSError):
        return None
    first, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in rest)]
    length = int(dict(headers).get("content-length", "0"))
    certificate = writer.get_extra_info("peercert") or {}
    names = dict(pair[0] for pair in certificate.get("subject", ()))
    body = await reader.readexactly(length)
    return Asked(method, target, headers, body, number, names.get("commonName", ""), writer, reader)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until one side ends."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.transport.abort()


async def tunnel(asked: Asked, host: str, port: int) -> None:
    """Join a client's connection with one to a server, as a proxy does after CONNECT."""
    reader, writer = await asyncio.open_connection(host, port)
    await asyncio.gather(pump(asked.reader, writer), pump(reader, asked.writer))
