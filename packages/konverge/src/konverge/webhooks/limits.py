"""The limits of the webhook server, derived from the memory that its container may use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from konverge.listener import ConnectionLimits

__all__ = ["ServerLimits", "memory_limit"]

_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_CONNECTION: Final = 256 * _KIB
"""The memory of a connection with TLS, measured with 1,000 idle ones."""

_CGROUP: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True)
class ServerLimits:
    """The limits of the server. Sizes are in bytes, times in seconds.

    `body` is for admission reviews: the new and the old object, and the review around them. A conversion review
    contains a whole list. `buffered` is the total of all bodies in memory. `waiting` bounds the connections on which no
    review is handled, `connections` all of them.
    """

    body: int = 7 * _MIB
    conversion_body: int = 64 * _MIB
    buffered: int = 256 * _MIB
    connections: int = 1000
    waiting: int = 250
    handshake: float = 10.0
    first_request: float = 10.0
    read: float = 10.0

    @classmethod
    def within(cls, memory: int | None) -> Self:
        """Return the limits for a container with this much memory, or the defaults for None.

        Bodies get an eighth, because decoding needs several times their size; waiting connections get a sixteenth, all
        connections a quarter. A review of the largest objects fits always.
        """
        default = cls()
        if memory is None:
            return default
        buffered = max(min(memory // 8, default.buffered), 2 * default.body)
        return cls(
            buffered=buffered,
            conversion_body=min(buffered, default.conversion_body),
            connections=max(min(memory // 4 // _CONNECTION, default.connections), 64),
            waiting=max(min(memory // 16 // _CONNECTION, default.waiting), 32),
        )

    def of_connections(self) -> ConnectionLimits:
        """Return the limits of the listener."""
        return ConnectionLimits(
            min(self.waiting, self.connections), self.handshake + self.first_request, total=self.connections
        )


def memory_limit(files: tuple[Path, ...] = _CGROUP) -> int | None:
    """Return how many bytes the container of this process may use, None without a limit."""
    for file in files:
        try:
            limit = int(file.read_text())
        except (OSError, ValueError):  # "max"
            continue
        return limit if limit < 1 << 50 else None  # version 1 has no word for "no limit"
    return None
