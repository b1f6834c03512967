"""Sockets with options that detect an unreachable peer."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Callable
from typing import Any, TypeVar

from konverge.client.connection.limits import Limits

__all__ = ["WriteGuardSocket", "open_socket", "set_keep_alive"]


Socket = TypeVar("Socket", bound=socket.socket)


class WriteGuardSocket(socket.socket):
    """A socket that calls `before_send`, if it is set, right before bytes are handed to the operating system.

    What does not fit into the buffer of the socket is sent later, by the event loop: this is where that is stopped. An
    exception of `before_send` becomes a ConnectionAbortedError, so that the event loop closes the connection. (uvloop
    uses the descriptor of the socket and calls nothing.)
    """

    before_send: Callable[[], object] | None = None

    def send(self, *args: Any) -> int:
        """Send bytes."""
        self._check()
        return super().send(*args)

    def sendmsg(self, *args: Any) -> int:
        """Send several buffers."""
        self._check()
        return super().sendmsg(*args)

    def _check(self) -> None:
        if self.before_send is None:
            return
        try:
            self.before_send()
        except Exception as error:
            raise ConnectionAbortedError(errno.ECONNABORTED, "stopped by the write guard") from error


def open_socket(address: tuple[Any, ...], *, limits: Limits) -> WriteGuardSocket:
    """Return a socket for an entry of `getaddrinfo`.

    Raises: PermissionError for a link-local address, unless the limits permit it.
    """
    family, kind, protocol, _, (host, *_) = address
    if not limits.link_local and _is_link_local(host):
        raise PermissionError(errno.EACCES, f"{host} is a link-local address, which is not permitted")
    return set_keep_alive(WriteGuardSocket(family, kind, protocol), limits.peer_timeout)


def _is_link_local(host: str) -> bool:
    address = ipaddress.ip_address(host)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_link_local


def set_keep_alive(sock: Socket, timeout: float) -> Socket:
    """Set options that close the connection after `timeout` seconds without a sign of the peer; return the socket.

    An idle connection sends keepalive probes; otherwise missing acknowledgements count (TCP_USER_TIMEOUT).
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": max(1, int(timeout / 2)),
        "TCP_KEEPINTVL": max(1, int(timeout / 6)),
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": int(timeout * 1000),
    }
    for name, value in options.items():
        if hasattr(socket, name):  # not every system has all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return sock
