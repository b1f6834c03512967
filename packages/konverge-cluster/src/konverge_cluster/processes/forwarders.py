"""TCP forwarding in this process: a listening socket whose connections continue at a backend.

A *blocked* connection is as in a network that drops packets: it is not refused and does not end, but no byte passes.
When it is unblocked, it continues.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias, cast

__all__ = ["Address", "Connection", "Forwarder", "listening_socket"]

Address: TypeAlias = tuple[str, int]
Listen: TypeAlias = Callable[[str, int], socket.socket]

_log: Final = logging.getLogger(__name__)
_BACKLOG: Final = 512


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; port 0 selects a free one.

    Raises: OSError when the address is in use, or the port needs a right that this user lacks.
    """
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(_BACKLOG)
        found.setblocking(False)
    except OSError:
        found.close()
        raise
    return found


class Forwarder:
    """Forwards the connections of one listening socket.

    Promises:

    - `choose` selects the backend of each connection; a connection keeps its backend for its life;
    - a backend that does not accept ends the connection with a reset, as if the client had connected to it;
    - after `close` connections are refused, and those that exist continue until one side ends them;
    - after `abort` there is no connection;
    - the end of one direction passes on, and the other direction stays open;
    - a slow reader slows the writer down: the buffers are bounded.

    `is_blocked` reports whether the bytes of a connection are dropped; call `refresh` after its answer changed.
    """

    def __init__(
        self,
        choose: Callable[[], Address | None],
        *,
        is_blocked: Callable[[Connection], bool] = lambda _: False,
    ) -> None:
        self.connections: set[Connection] = set()
        self._choose = choose
        self._is_blocked = is_blocked
        self._listening: socket.socket | None = None
        self._accepting: set[asyncio.Task[object]] = set()
        self._is_aborted = False
        self.address: Address = ("", 0)

    @property
    def is_listening(self) -> bool:
        """Whether connections are accepted."""
        return self._listening is not None

    def start(self, listening: socket.socket) -> None:
        """Accept connections of a listening socket, inside a running event loop."""
        self.address = listening.getsockname()
        self._listening = listening
        self._is_aborted = False
        asyncio.get_running_loop().add_reader(listening, self._accept)

    def _accept(self) -> None:
        # Not an asyncio.Server: in 3.11 that leaks connections that are accepted while it is closed.
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while self._listening is not None:
                accepted, _ = self._listening.accept()
                accepted.setblocking(False)
                task: asyncio.Task[object] = loop.create_task(self._serve(accepted))
                self._accepting.add(task)
                task.add_done_callback(self._accepting.discard)

    async def _serve(self, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: Connection(self).client, accepted)

    def close(self) -> None:
        """Refuse new connections; those that exist continue."""
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
            self._listening = None

    def abort(self) -> None:
        """Refuse new connections and reset those that exist."""
        self.close()
        self._is_aborted = True
        for connection in list(self.connections):
            connection.abort()

    def refresh(self) -> None:
        """Apply a change of what `is_blocked` reports."""
        for connection in list(self.connections):
            connection.set_blocked(self._is_blocked(connection))

    # What connections call

    def connected(self, connection: Connection) -> None:
        """Choose the backend of a new connection, and connect to it unless it is blocked."""
        if self._is_aborted:
            connection.abort()
            return
        self.connections.add(connection)
        connection.backend = self._choose()
        connection.set_blocked(self._is_blocked(connection))

    def disconnected(self, connection: Connection) -> None:
        """Forget a connection."""
        self.connections.discard(connection)


class Connection:
    """One forwarded connection: `source` and `target` are its ends at the client, `backend` is where it continues."""

    def __init__(self, forwarder: Forwarder) -> None:
        self.client = _Side(self)
        self.server = _Side(self)
        self.client.other, self.server.other = self.server, self.client
        self.source: Address = ("", 0)
        self.target: Address = ("", 0)
        self.backend: Address | None = None
        self._forwarder = forwarder
        self._blocked = False
        self._connecting: asyncio.Task[None] | None = None

    def set_blocked(self, blocked: bool) -> None:
        """Drop the bytes of both directions from now on, or pass them again."""
        self._blocked = blocked
        for side in (self.client, self.server):
            side.update_reading()
        if not blocked and self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect())

    def connected(self, side: _Side) -> None:
        """Act on a side that is connected."""
        if side is self.client:
            self.source = side.transport.get_extra_info("peername")
            self.target = side.transport.get_extra_info("sockname")
            self._forwarder.connected(self)
        else:
            self.client.update_reading()

    @property
    def passes(self) -> bool:
        """Whether bytes pass: both sides are connected, and it is not blocked."""
        return not self._blocked and self.server.is_open

    async def _connect(self) -> None:
        try:
            if self.backend is None:
                raise OSError("no backend")
            await asyncio.get_running_loop().create_connection(lambda: self.server, *self.backend)
        except OSError as error:
            _log.debug("Backend refused a connection", extra={"backend": self.backend, "error": str(error)})
            self.abort()
        if not self.client.is_open:
            self.abort()

    def disconnected(self, side: _Side) -> None:
        """End both sides, as one has disconnected; what is in flight to the other one still arrives."""
        if side.other.is_open:
            side.other.transport.close()
        elif self._connecting is None or self._connecting.done():
            self._forwarder.disconnected(self)

    def abort(self) -> None:
        """Reset both sides."""
        for side in (self.client, self.server):
            side.abort()
        if self._connecting is not None:
            self._connecting.cancel()
        self._forwarder.disconnected(self)


class _Side(asyncio.Protocol):
    """One of the two sockets of a connection."""

    def __init__(self, connection: Connection) -> None:
        self.other: _Side
        self.transport: asyncio.Transport
        self.is_open = False
        self._connection = connection
        self._is_full = False  # its buffer for writing
        self._reading = True
        self._eof = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.is_open = True
        _set_no_delay(self.transport)
        self.update_reading()
        self._connection.connected(self)

    def data_received(self, data: bytes) -> None:
        self.other.transport.write(data)

    def eof_received(self) -> bool:
        self._eof = True
        if self.other.is_open and self.other.transport.can_write_eof():
            self.other.transport.write_eof()
        return not self.other._eof

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if exc is not None and self.other.is_open:
            self.other.abort()
        self._connection.disconnected(self)

    def pause_writing(self) -> None:
        self._is_full = True
        self.other.update_reading()

    def resume_writing(self) -> None:
        self._is_full = False
        self.other.update_reading()

    def update_reading(self) -> None:
        """Read only while what was read can be written to the other side."""
        desired = self._connection.passes and not self.other._is_full
        if not self.is_open or self.transport.is_closing() or desired == self._reading:
            return
        self._reading = desired
        if desired:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def abort(self) -> None:
        """Reset the connection of this side."""
        if self.is_open:
            _reset_on_close(self.transport)
            self.transport.abort()


def _set_no_delay(transport: asyncio.Transport) -> None:
    found = transport.get_extra_info("socket")
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _reset_on_close(transport: asyncio.Transport) -> None:
    found = transport.get_extra_info("socket")
    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
