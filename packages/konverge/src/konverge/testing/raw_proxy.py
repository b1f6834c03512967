"""A proxy that breaks bare connections: it knows nothing of what goes through it.

A black hole is the fault that HTTP cannot show: bytes vanish, no connection is closed, and the system at the other end
goes on to acknowledge that it is there.
"""

from __future__ import annotations

import asyncio
import dataclasses
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from konverge.client import ClientConfig
from konverge.testing.control_plane import ControlPlane
from konverge.testing.fault_proxy import config_of

__all__ = ["RawProxy"]


class RawProxy:
    """Forwards connections on loopback, byte by byte, until it is told otherwise.

    TLS goes through untouched, so `config` is the upstream's with another address. `connections` has the time of each
    connection, refused ones included.
    """

    def __init__(self, upstream: ControlPlane | ClientConfig) -> None:
        self._upstream = config_of(upstream)
        self.connections: list[float] = []
        self._links: set[_Link] = set()
        self._refusing = False
        self._listener: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._listener is not None
        self._listener.close()
        self._refusing = True  # who was let in just now finds nobody
        links = list(self._links)
        for link in links:
            link.task.cancel()
        await asyncio.gather(*(link.task for link in links), return_exceptions=True)
        await self._listener.wait_closed()

    @property
    def config(self) -> ClientConfig:
        """How a client reaches the proxy."""
        assert self._listener is not None
        scheme = urlsplit(self._upstream.server).scheme
        port = self._listener.sockets[0].getsockname()[1]
        return dataclasses.replace(self._upstream, server=f"{scheme}://127.0.0.1:{port}")

    @property
    def open(self) -> int:
        """How many connections there are now, frozen ones included."""
        return len(self._links)

    def freeze(self) -> int:
        """Let no byte more through on the present connections, and close none; new ones work. Gives how many."""
        for link in self._links:
            link.flowing.clear()
        return len(self._links)

    def thaw(self) -> None:
        """Let everything through again, what was held back included."""
        for link in self._links:
            link.flowing.set()

    def cut(self) -> int:
        """Break off the present connections; gives how many."""
        for link in self._links:
            link.abort()
        return len(self._links)

    def refuse(self, refusing: bool = True) -> None:
        """Break off each new connection at once, or stop doing so."""
        self._refusing = refusing

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(asyncio.get_running_loop().time())
        task = asyncio.current_task()
        assert task is not None
        link = _Link(task, writer)
        self._links.add(link)
        try:
            if not self._refusing:
                await self._join(link, reader)
        except (OSError, asyncio.CancelledError):
            pass  # a connection that ends is no failure of the proxy, nor is its own end
        finally:
            self._links.discard(link)
            link.abort()

    async def _join(self, link: _Link, reader: asyncio.StreamReader) -> None:
        url = urlsplit(self._upstream.server)
        from_server, to_server = await asyncio.open_connection(url.hostname, url.port)
        link.writers.append(to_server)
        to_client = link.writers[0]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(link.pump(reader, to_server))
            tasks.create_task(link.pump(from_server, to_client))


class _Link:
    """One connection through the proxy: the client's side of it, and the server's once it is there."""

    def __init__(self, task: asyncio.Task[None], client: asyncio.StreamWriter) -> None:
        self.task = task
        self.writers = [client]
        self.flowing = asyncio.Event()
        self.flowing.set()

    def abort(self) -> None:
        for writer in self.writers:
            writer.transport.abort()

    async def pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy bytes until one side ends; then the other ends too."""
        try:
            while data := await reader.read(1 << 16):
                await self.flowing.wait()
                writer.write(data)
                await writer.drain()
            # An end that comes while nothing gets through does not get through either.
            await self.flowing.wait()
        except OSError:
            pass
        self.abort()
