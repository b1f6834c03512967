"""A listening port that closes all of its connections.

asyncio.Server does not track connections during the TLS handshake or the TLS shutdown, and some versions wait for no
connection at all. A socket that stays open then outlives its event loop. `Listener` tracks each connection from the
moment that it is accepted, by its socket, whatever its state in asyncio.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, Final, Self
from weakref import WeakSet

__all__ = ["Listener"]

_POLL_INTERVAL: Final = 0.005
_SSL_SHUTDOWN_TIMEOUT: Final = 1.0


class Listener:
    """The listening port of a server, with all connections that were accepted on it.

    Promises: after `close` no connection is accepted; after `drop` no connection is left, or its timeout has passed.
    Both may be called twice.
    """

    def __init__(self, servers: list[asyncio.Server], accepted: WeakSet[socket.socket]) -> None:
        self._servers = servers
        self._accepted = accepted
        self.address, self.port = servers[0].sockets[0].getsockname()[:2]

    @classmethod
    async def open(
        cls, protocols: Callable[[], asyncio.BaseProtocol], host: str | None, port: int, **options: Any
    ) -> Self:
        """Start to listen, on every address of the machine if `host` is None; `options` are those of `create_server`.

        Raises: OSError when the address cannot be bound.
        """
        loop = asyncio.get_running_loop()
        accepted: WeakSet[socket.socket] = WeakSet()
        # asyncio binds, since it resolves address families; the listening sockets are ours, so that they can track.
        bound = await loop.create_server(protocols, host, port, start_serving=False)
        sockets = [_TrackingSocket(each.dup(), accepted) for each in bound.sockets]
        bound.close()
        if options.get("ssl") is not None:
            options = {"ssl_shutdown_timeout": _SSL_SHUTDOWN_TIMEOUT, **options}
        try:
            return cls([await loop.create_server(protocols, sock=each, **options) for each in sockets], accepted)
        except BaseException:
            for each in sockets:
                each.close()
            raise

    @property
    def connections(self) -> int:
        """The number of connections, including those in a TLS handshake or shutdown."""
        return len(self._open())

    def close(self) -> None:
        """Stop accepting connections."""
        for server in self._servers:
            server.close()

    async def drop(self, *, timeout: float = 1.5) -> None:
        """Shut down all connections and wait until they are closed, for at most `timeout` seconds."""
        self.close()
        clock = asyncio.get_running_loop().time
        end = clock() + timeout
        while (left := self._open()) and clock() < end:
            for each in left:
                # The reader or writer of the connection sees the end of the stream and closes it.
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(_POLL_INTERVAL)

    def _open(self) -> list[socket.socket]:
        return [each for each in self._accepted if each.fileno() >= 0]


class _TrackingSocket(socket.socket):
    """A listening socket that records the sockets it accepts."""

    def __init__(self, bound: socket.socket, accepted: WeakSet[socket.socket]) -> None:
        super().__init__(bound.family, bound.type, bound.proto, fileno=bound.detach())
        self.setblocking(False)
        self._accepted = accepted

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        self._accepted.add(connection)
        return connection, address
