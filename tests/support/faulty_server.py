"""A small HTTP server whose responses, valid or not, are those of a test."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class ReceivedRequest:
    """A request as it was received; header names are lower case, `connection` counts from 1."""

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

    async def respond(self, status: int = 200, body: bytes = b"{}", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers, "", ""]
        await self.write("\r\n".join(lines).encode() + body)

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def abort(self) -> None:
        """Reset the connection, without a TLS shutdown."""
        self.writer.transport.abort()


Handler = Callable[[ReceivedRequest], Awaitable[None]]


@dataclass
class FaultyServer:
    """A running server: its address, and the requests that it received."""

    handler: Handler
    scheme: str = "http"
    port: int = 0
    requests: list[ReceivedRequest] = field(default_factory=list)
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
            while (request := await _read_request(reader, writer, number)) is not None:
                self.requests.append(request)
                await self.handler(request)
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
    """Serve on a free loopback port until the block ends; then abort every connection."""
    faulty = FaultyServer(handler, "https" if tls else "http")
    server = await asyncio.start_server(faulty.connected, "127.0.0.1", 0, ssl=tls)
    faulty.port = server.sockets[0].getsockname()[1]
    try:
        yield faulty
    finally:
        server.close()
        await faulty.stop()
        await server.wait_closed()


async def _read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
) -> ReceivedRequest | None:
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
    return ReceivedRequest(method, target, headers, body, number, names.get("commonName", ""), writer, reader)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until one side ends."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.transport.abort()


async def tunnel(request: ReceivedRequest, host: str, port: int) -> None:
    """Join a client's connection with one to a server, as a proxy does after CONNECT."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        await asyncio.gather(pump(request.reader, writer), pump(reader, request.writer))
    finally:
        writer.transport.abort()
