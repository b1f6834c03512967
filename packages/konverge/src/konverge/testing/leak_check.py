"""Leak check: connections, listeners and pipes that a loop still has open when its work is done.

Python warns about an unclosed resource when it is garbage collected, while other code runs. This check runs at the end
of the loop itself, where the owner of the resource is known.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import socket
from typing import Final

__all__ = ["LeakCheckLoop", "assert_all_closed"]

_POLL_INTERVAL: Final = 0.005


class LeakCheckLoop(asyncio.SelectorEventLoop):
    """An ordinary loop that can list its open resources."""

    def __init__(self) -> None:
        self._file_selector = selectors.DefaultSelector()
        super().__init__(self._file_selector)
        # The self-pipe: threads and signals wake the loop with it.
        self._own = {each.fd for each in self._file_selector.get_map().values()}

    async def open_resources(self, *, timeout: float = 5.0) -> list[str]:
        """Return the open resources as text. Connections get `timeout` seconds to close, a listener counts at once."""
        end = self.time() + timeout
        while fds := self._open_fds():
            if self.time() > end or any(map(_is_listener, fds)):
                return sorted(map(_describe, fds))
            await asyncio.sleep(_POLL_INTERVAL)
        return []

    def _open_fds(self) -> set[int]:
        registered = {each.fd for each in self._file_selector.get_map().values()}
        # A transport that is not being read, for example after EOF from the peer, is not registered in the selector.
        transports = list(getattr(self, "_transports", {}).values())
        unregistered = {each.get_extra_info("socket").fileno() for each in transports}
        return {fd for fd in registered | unregistered if fd >= 0} - self._own


async def assert_all_closed() -> None:
    """Fail if the running loop, when it is a `LeakCheckLoop`, still has open resources."""
    loop = asyncio.get_running_loop()
    leaks = await loop.open_resources() if isinstance(loop, LeakCheckLoop) else []
    assert not leaks, f"left open: {', '.join(leaks)}"


def _is_listener(fd: int) -> bool:
    try:
        with socket.socket(fileno=os.dup(fd)) as sock:
            return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    except OSError:
        return False


def _describe(fd: int) -> str:
    try:
        with socket.socket(fileno=os.dup(fd)) as sock:
            return f"{_address(sock.getsockname())} to {_address(_peer(sock))}"
    except OSError:
        return f"file descriptor {fd}"


def _peer(sock: socket.socket) -> object:
    try:
        return sock.getpeername()
    except OSError:
        return "no peer"


def _address(address: object) -> str:
    return ":".join(map(str, address[:2])) if isinstance(address, tuple) else str(address)
