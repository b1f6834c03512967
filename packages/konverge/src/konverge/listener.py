"""A listening port that limits its connections and closes all of them.

asyncio.Server does not track connections during the TLS handshake or the TLS shutdown, and some versions wait for no
connection at all. A socket that stays open then outlives its event loop. `Listener` accepts connections itself, and
tracks each by its socket, whatever its state in asyncio.

A connection that no request is served on costs its peer nothing and this process memory, so `ConnectionLimits` bounds
how many wait, and how long one may take for its first request.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final, Self
from weakref import WeakSet

__all__ = ["ConnectionLimits", "Listener", "is_loopback"]

_SSL_SHUTDOWN_TIMEOUT: Final = 1.0
_BURST: Final = 16
"""Connections accepted before anything else runs, closing included."""

_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE: Final = 1.0
"""Seconds until connections are accepted again after the system had no resources for one."""


def is_loopback(host: str) -> bool:
    """Report whether only programs of this machine can connect to an address, with or without brackets."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class ConnectionLimits:
    """The limits of a listener's connections.

    `waiting` bounds the connections on which no request is served: one more closes the oldest of them, first among
    those that never sent a request. `first_request` is how many seconds a new connection has until its first request is
    served, the TLS handshake included. `total` bounds all connections: when all of them serve requests, one more is
    refused.
    """

    waiting: int
    first_request: float
    total: int | None = None


class Listener:
    """The listening port of a server, with all connections that were accepted on it.

    Promises: after `close` no connection is accepted; after `drop` no connection is left, or its timeout has passed.
    Both may be called twice. The limits hold after each accepted connection, also in a burst; a connection on which a
    request is served is not closed because of them. A peer that sends nothing costs a socket, and no TLS.
    """

    def __init__(
        self,
        sockets: list[socket.socket],
        protocols: Callable[[], asyncio.BaseProtocol],
        limits: ConnectionLimits | None,
        options: dict[str, Any],
    ) -> None:
        self._sockets = sockets
        self._protocols = protocols
        self._options = options
        self._accepted: WeakSet[_Connection] = WeakSet()
        self._waiting = _Waiting(limits) if limits is not None else None
        self._connecting: set[asyncio.Task[None]] = set()
        self.address, self.port = sockets[0].getsockname()[:2]

    @classmethod
    async def open(
        cls,
        protocols: Callable[[], asyncio.BaseProtocol],
        host: str | None,
        port: int,
        *,
        limits: ConnectionLimits | None = None,
        ssl: ssl.SSLContext | None = None,
        ssl_handshake_timeout: float | None = None,
        backlog: int = 100,
    ) -> Self:
        """Start to listen, on every address of the machine if `host` is None.

        With `limits` the server calls `serving` for each request. The other options are those of `create_server`.

        Raises: OSError when the address cannot be bound.
        """
        # asyncio binds, since it resolves address families.
        bound = await asyncio.get_running_loop().create_server(protocols, host, port, start_serving=False)
        sockets = [each.dup() for each in bound.sockets]
        bound.close()
        options: dict[str, Any] = {}
        if ssl is not None:
            options = {"ssl": ssl, "ssl_shutdown_timeout": _SSL_SHUTDOWN_TIMEOUT}
            options["ssl_handshake_timeout"] = ssl_handshake_timeout
        listener = cls(sockets, protocols, limits, options)
        for each in sockets:
            each.setblocking(False)
            each.listen(backlog)
            listener._resume(each)
        return listener

    @property
    def connections(self) -> int:
        """The number of connections, including those in a TLS handshake or shutdown."""
        return len(self._open())

    @contextlib.contextmanager
    def serving(self, transport: asyncio.BaseTransport | None, *, trusted: bool = False) -> Iterator[None]:
        """Exempt a connection from the limits while a request is served on it, permanently if its peer is trusted."""
        sock = transport.get_extra_info("socket") if transport is not None else None
        if sock is None or self._waiting is None:
            yield
            return
        with self._waiting.serving(sock.fileno(), trusted=trusted):
            yield

    def close(self) -> None:
        """Stop accepting connections."""
        if self._waiting is not None:
            self._waiting.close()
        for each in self._sockets:
            if each.fileno() >= 0:
                asyncio.get_running_loop().remove_reader(each)
                each.close()

    async def drop(self, *, timeout: float = 1.5) -> None:
        """Shut down all connections and wait until they are closed, for at most `timeout` seconds."""
        self.close()
        left: set[asyncio.Future[None]] = set(self._connecting)
        for each in self._open():
            left.add(each.when_closed())
            _shut_down(each)
        if left:
            await asyncio.wait(left, timeout=timeout)

    def _open(self) -> list[_Connection]:
        return [each for each in self._accepted if each.fileno() >= 0]

    def _resume(self, sock: socket.socket) -> None:
        if sock.fileno() >= 0:
            asyncio.get_running_loop().add_reader(sock, self._accept, sock)

    def _accept(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(_BURST):
            try:
                connection = _Connection(sock.family, sock.type, sock.proto, fileno=sock.accept()[0].detach())
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    loop.remove_reader(sock)
                    loop.call_later(_PAUSE, self._resume, sock)
                return
            self._accepted.add(connection)
            if self._waiting is not None:
                self._waiting.add(connection)
            connecting = loop.create_task(self._connect(connection))
            self._connecting.add(connecting)
            connecting.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: socket.socket) -> None:
        """Create the transport of a connection as soon as its peer has sent something."""
        connection.setblocking(False)
        try:
            if "ssl" in self._options and not await _has_sent(connection):
                connection.close()
                return
            await asyncio.get_running_loop().connect_accepted_socket(self._protocols, connection, **self._options)
        except OSError as error:  # the handshake failed, or the peer has gone
            # The frames refer to the error, and so to themselves: 256 KiB that the garbage collector does not count.
            traceback.clear_frames(error.__traceback__)
            connection.close()


class _Connection(socket.socket):
    """An accepted connection that notifies whoever waits for its end, also when asyncio closes it."""

    _waiting: asyncio.Future[None] | None = None

    def when_closed(self) -> asyncio.Future[None]:
        """Return a future that is done when the socket is closed."""
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_future()
        return self._waiting

    def close(self) -> None:
        super().close()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


async def _has_sent(connection: socket.socket) -> bool:
    """Wait for the first bytes of a peer; return False if it has closed the connection instead."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(connection, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(connection)
    return bool(connection.recv(1, socket.MSG_PEEK))


def _shut_down(connection: socket.socket) -> None:
    # The reader or writer of the connection sees the end of the stream and closes it.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Waiting:
    """The connections on which no request is served, by file descriptor, the oldest first.

    `_new` are those that never sent a request, with the time by which they must; `_idle` the others.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._new: dict[int, tuple[socket.socket, float]] = {}
        self._idle: dict[int, socket.socket] = {}
        self._served = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: socket.socket) -> None:
        """Add a connection that was just accepted, and close those over the limits."""
        loop = asyncio.get_running_loop()
        self._remove(connection.fileno())
        self._new[connection.fileno()] = (connection, loop.time() + self._limits.first_request)
        if self._timer is None:
            self._timer = loop.call_later(self._limits.first_request, self._expire)
        self._close_oldest()

    @contextlib.contextmanager
    def serving(self, descriptor: int, *, trusted: bool) -> Iterator[None]:
        """Remove a connection while a request is served on it, or permanently."""
        connection = self._remove(descriptor)
        if connection is None:
            yield
            return
        self._served += 1
        try:
            yield
        finally:
            self._served -= 1
            if connection.fileno() == descriptor and not trusted:
                self._idle[descriptor] = connection
                self._close_oldest()

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _remove(self, descriptor: int) -> socket.socket | None:
        """Remove a connection; return it, None when it is not waiting."""
        connection, _ = self._new.pop(descriptor, (None, 0.0))
        return connection or self._idle.pop(descriptor, None)

    def _close_oldest(self) -> None:
        limit = self._limits.waiting
        if self._limits.total is not None:
            limit = min(limit, self._limits.total - self._served)
        if len(self._new) + len(self._idle) <= limit:
            return
        self._forget_closed()
        over = max(len(self._new) + len(self._idle) - limit, 0)
        for descriptor in [*self._new, *self._idle][:over]:
            if (connection := self._remove(descriptor)) is not None:
                _shut_down(connection)

    def _forget_closed(self) -> None:
        self._new = {key: value for key, value in self._new.items() if value[0].fileno() == key}
        self._idle = {key: value for key, value in self._idle.items() if value.fileno() == key}

    def _expire(self) -> None:
        """Close the connections whose time for the first request is over."""
        loop = asyncio.get_running_loop()
        self._timer = None
        self._forget_closed()
        for descriptor, (connection, end) in list(self._new.items()):
            if end > loop.time():
                self._timer = loop.call_at(end, self._expire)
                return
            del self._new[descriptor]
            _shut_down(connection)
