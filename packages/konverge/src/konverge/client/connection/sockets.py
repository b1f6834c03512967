"""Sockets that notice when nobody is at the other end any more."""

from __future__ import annotations

import socket

__all__ = ["notice_dead_peer"]


def notice_dead_peer(link: socket.socket, after: float) -> socket.socket:
    """Have the system give up on a peer that is gone: by probes when idle, by missing acknowledgements when not."""
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": max(1, int(after / 2)),
        "TCP_KEEPINTVL": max(1, int(after / 6)),
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": int(after * 1000),
    }
    for name, value in options.items():
        if hasattr(socket, name):  # not every system has all of them
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return link
