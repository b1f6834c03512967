"""Listening, for every server of this package: what was let in is gone when the server is.

asyncio's own server forgets connections that shake hands and those that wait for the answer to a goodbye; some versions
do not wait for any. A socket that stays open then outlives its loop. Here each connection is known from the moment that
it is accepted, by the socket itself, whatever state asyncio holds it in.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, Final, Self
from weakref import WeakSet

__all__ = ["Listener"]

_LOOK: Final = 0.005
_GOODBYE: Final = 1.0


class Listener:
    """The open port of a server, with all connections that came in by it.

    Promises: after `close` nobody new comes in; after `drop` no connection is left, or it has had its time to go. Both
    may be called twice.
    """

    def __init__(self, servers: list[asyncio.Server], accepted: WeakSet[socket.socket]) -> None:
        self._servers = servers
        self._accepted = accepted
        self.address, self.port = servers[0].sockets[0].getsockname()[:2]

    @classmethod
    async def open(
        cls, protocols: Callable[[], asyncio.BaseProtocol], host: str | None, port: int, **options: Any
    ) -> Self:
        """Listen, on every address of the machine when there is no host; `options` are those of `create_server`.

        Raises: OSError when that address cannot be had.
        """
        loop = asyncio.get_running_loop()
        accepted: WeakSet[socket.socket] = WeakSet()
        # Bound by asyncio, which knows about families and addresses; listened on by sockets of our own.
        bound = await loop.create_server(protocols, host, port, start_serving=False)
        sockets = [_Accepting(each.dup(), accepted) for each in bound.sockets]
        bound.close()
        if options.get("ssl") is not None:
            options = {"ssl_shutdown_timeout": _GOODBYE, **options}
        try:
            return cls([await loop.create_server(protocols, sock=each, **options) for each in sockets], accepted)
        except BaseException:
            for each in sockets:
                each.close()
            raise

    @property
    def connections(self) -> int:
        """How many connections there are, those included that still shake hands or say goodbye."""
        return len(self._open())

    def close(self) -> None:
        """Let nobody in any more."""
        for server in self._servers:
            server.close()

    async def drop(self, *, within: float = 1.5) -> None:
        """Break off what is still connected, and wait until it is gone, at most so many seconds."""
        self.close()
        clock = asyncio.get_running_loop().time
        end = clock() + within
        while (left := self._open()) and clock() < end:
            for each in left:
                # Whoever reads or writes it sees the end now and closes it, as after any end.
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(_LOOK)

    def _open(self) -> list[socket.socket]:
        return [each for each in self._accepted if each.fileno() >= 0]


class _Accepting(socket.socket):
    """A listening socket that notes what it accepts."""

    def __init__(self, bound: socket.socket, accepted: WeakSet[socket.socket]) -> None:
        super().__init__(bound.family, bound.type, bound.proto, fileno=bound.detach())
        self.setblocking(False)
        self._accepted = accepted

    def accept(self) -> tuple[socket.socket, Any]:
        link, address = super().accept()
        self._accepted.add(link)
        return link, address
