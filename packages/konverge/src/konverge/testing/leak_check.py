"""What a loop still holds when its work is over: connections, listeners and pipes that nobody closed.

Python tells of such a thing when it collects garbage, in the middle of whatever runs by then. Here it can be asked for
at the loop's own end, where it is known whose it was.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import socket
from typing import Final

__all__ = ["WatchedLoop", "assert_nothing_left"]

_LOOK: Final = 0.005


class WatchedLoop(asyncio.SelectorEventLoop):
    """An ordinary loop that can say what it waits for."""

    def __init__(self) -> None:
        self._held = selectors.DefaultSelector()
        super().__init__(self._held)
        self._own = {each.fd for each in self._held.get_map().values()}  # by it threads and signals wake the loop

    async def left_open(self, *, patience: float = 5.0) -> list[str]:
        """Give what is open, in words. Connections have their time to say goodbye, a listener is told at once."""
        end = self.time() + patience
        while held := self._open():
            if self.time() > end or any(map(_is_listener, held)):
                return sorted(map(_words, held))
            await asyncio.sleep(_LOOK)
        return []

    def _open(self) -> set[int]:
        waiting = {each.fd for each in self._held.get_map().values()}
        # One that is not read, as after the end of what the peer had to say, is no longer waited for.
        transports = list(getattr(self, "_transports", {}).values())
        silent = {each.get_extra_info("socket").fileno() for each in transports}
        return {fd for fd in waiting | silent if fd >= 0} - self._own


async def assert_nothing_left() -> None:
    """Fail if the running loop, when it is a watched one, still holds what its work should have closed."""
    loop = asyncio.get_running_loop()
    left = await loop.left_open() if isinstance(loop, WatchedLoop) else []
    assert not left, f"left open: {', '.join(left)}"


def _is_listener(number: int) -> bool:
    try:
        with socket.socket(fileno=os.dup(number)) as link:
            return link.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    except OSError:
        return False


def _words(number: int) -> str:
    try:
        with socket.socket(fileno=os.dup(number)) as link:
            return f"{_place(link.getsockname())} to {_place(_peer(link))}"
    except OSError:
        return f"file descriptor {number}"


def _peer(link: socket.socket) -> object:
    try:
        return link.getpeername()
    except OSError:
        return "nobody"


def _place(address: object) -> str:
    return ":".join(map(str, address[:2])) if isinstance(address, tuple) else str(address)
