"""Sockets with options that detect an unreachable peer."""

from __future__ import annotations

import errno
import ipaddress
import socket
from typing import Any

from konverge.client.connection.limits import Limits

__all__ = ["open_socket", "set_keep_alive"]


def open_socket(address: tuple[Any, ...], *, limits: Limits) -> socket.socket:
    """Return a socket for an entry of `getaddrinfo`.

    Raises: PermissionError for a link-local address, unless the limits permit it.
    """
    family, kind, protocol, _, (host, *_) = address
    if not limits.link_local and _is_link_local(host):
        raise PermissionError(errno.EACCES, f"{host} is a link-local address, which is not permitted")
    return set_keep_alive(socket.socket(family, kind, protocol), limits.peer_timeout)


def _is_link_local(host: str) -> bool:
    address = ipaddress.ip_address(host)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_link_local


def set_keep_alive(sock: socket.socket, timeout: float) -> socket.socket:
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
