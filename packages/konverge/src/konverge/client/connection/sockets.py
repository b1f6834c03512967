"""Socket options that detect an unreachable peer."""

from __future__ import annotations

import socket

__all__ = ["set_keep_alive"]


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
