"""The TCP sockets of this machine, from /proc: which listen on all addresses, and which process has a socket."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final

__all__ = ["Socket", "pod_sockets", "read_sockets"]

_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTEN: Final = "0A"
_NO_REMOTE: Final = f"0:0000 {_LISTEN} "


@dataclass(frozen=True)
class Socket:
    """A row of the table; `remote` is the other side of a connection."""

    inode: int
    local: tuple[str, int]
    remote: tuple[str, int]
    listens: bool

    @property
    def is_wildcard(self) -> bool:
        """Whether it listens on all addresses."""
        return self.listens and self.local[0] in ("0.0.0.0", "::")


def read_sockets(tables: Iterable[str] = _TABLES, *, listening: bool = False) -> Iterator[Socket]:
    """Yield the TCP sockets of this machine, or only those that listen: few, among many connections."""
    for path in tables:
        with suppress(OSError), open(path, encoding="ascii") as file:
            next(file, None)
            for line in file:
                if listening and _NO_REMOTE not in line:
                    continue
                fields = line.split()
                yield Socket(int(fields[9]), _address(fields[1]), _address(fields[2]), fields[3] == _LISTEN)


def _address(text: str) -> tuple[str, int]:
    """Return host and port: the kernel prints each word of an address in the order of this machine."""
    words, _, port = text.partition(":")
    content = b"".join(bytes.fromhex(words[at : at + 8])[::-1] for at in range(0, len(words), 8))
    if len(content) == 4:
        return str(IPv4Address(content)), int(port, 16)
    found = IPv6Address(content)
    return str(found.ipv4_mapped or found), int(port, 16)


def pod_sockets(pids: Iterable[int]) -> set[int]:
    """Return the inodes of the sockets of processes."""
    found: set[int] = set()
    for pid in pids:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                found.add(_socket(f"/proc/{pid}/fd/{name}"))
    return found - {0}


def _socket(path: str) -> int:
    """Return the inode of the socket that a descriptor is, 0 if it is none."""
    with suppress(OSError):
        target = os.readlink(path)
        return int(target[8:-1]) if target.startswith("socket:[") else 0
    return 0
