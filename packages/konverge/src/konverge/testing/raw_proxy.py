"""A TCP proxy that injects faults into connections, whatever protocol they carry.

HTTP cannot express a black hole: bytes are lost, no connection is closed, and the kernel of the peer still acknowledges
packets.
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
    """Forwards connections on loopback, byte by byte, unless a fault is injected.

    TLS is passed through, so `config` is the upstream's with another address. `connections` has the time of each
    connection, including rejected ones.
    """

    def __init__(self, upstream: ControlPlane | ClientConfig) -> None:
        self._upstream = config_of(upstream)
        self.connections: list[float] = []
        self._links: set[_Link] = set()
        self._rejecting = False
        self._listener: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._listener is not None
        self._listener.close()
        self._rejecting = True  # closes a connection that was accepted just now
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
        """How many connections are open, including paused ones."""
        return len(self._links)

    def pause(self) -> int:
        """Forward nothing more on the open connections, without closing them; return their number. New ones work."""
        for link in self._links:
            link.flowing.clear()
        return len(self._links)

    def resume(self) -> None:
        """Forward everything again, including the bytes that were held back."""
        for link in self._links:
            link.flowing.set()

    def reset(self) -> int:
        """Reset the open connections; return their number."""
        for link in self._links:
            link.abort()
        return len(self._links)

    def reject(self, enabled: bool = True) -> None:
        """Reset each new connection at once, or stop doing so."""
        self._rejecting = enabled

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(asyncio.get_running_loop().time())
        task = asyncio.current_task()
        assert task is not None
        link = _Link(task, writer)
        self._links.add(link)
        try:
            if not self._rejecting:
                await self._connect(link, reader)
        except (OSError, asyncio.CancelledError):
            pass  # neither a broken connection nor the end of the proxy is a failure
        finally:
            self._links.discard(link)
            link.abort()

    async def _connect(self, link: _Link, reader: asyncio.StreamReader) -> None:
        url = urlsplit(self._upstream.server)
        from_server, to_server = await asyncio.open_connection(url.hostname, url.port)
        link.writers.append(to_server)
        to_client = link.writers[0]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(link.forward(reader, to_server))
            tasks.create_task(link.forward(from_server, to_client))


class _Link:
    """One connection through the proxy: the client's side, and the server's once it is open."""

    def __init__(self, task: asyncio.Task[None], client: asyncio.StreamWriter) -> None:
        self.task = task
        self.writers = [client]
        self.flowing = asyncio.Event()
        self.flowing.set()

    def abort(self) -> None:
        for writer in self.writers:
            writer.transport.abort()

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy bytes until one side closes; then close the other too."""
        try:
            while data := await reader.read(1 << 16):
                await self.flowing.wait()
                writer.write(data)
                await writer.drain()
            # EOF is not forwarded while the connection is paused.
            await self.flowing.wait()
        except OSError:
            pass
        self.abort()
