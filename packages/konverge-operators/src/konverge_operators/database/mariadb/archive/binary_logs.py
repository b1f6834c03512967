"""A file of the binary log: which transactions it has, where they are, and when they were committed."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from mmap import mmap
from typing import Final, TypeAlias

from konverge_operators.database.archive.stores import ArchiveError

__all__ = ["DOMAIN", "BinaryLog", "Content", "Transaction", "read_log"]

Content: TypeAlias = bytes | mmap

DOMAIN: Final = 1
"""The domain of transactions that Galera replicates. What a member writes for itself alone has another one."""
_MAGIC: Final = b"\xfebin"
_HEADER: Final = struct.Struct("<IBIIIH")  # time, type, server, length, next position, flags
_TRANSACTION: Final = struct.Struct("<QIB")  # number, domain, flags
_STATE: Final = struct.Struct("<IIQ")  # domain, server, number
_QUERY, _XID, _STANDALONE_FLAG = 2, 16, 1
_GTID, _GTID_LIST, _XA_PREPARE = 162, 163, 38
_COMPRESSED_QUERY: Final = 165
_CHECKSUM: Final = 4
_COMMIT: Final = b"\0COMMIT"
"""The end of a statement event, before its checksum if it has one: the name of a database ends with a zero."""


@dataclass(frozen=True)
class Transaction:
    """A transaction: its number, the second of its commit, and where it is in the file."""

    number: int
    time: int
    start: int
    end: int


@dataclass(frozen=True)
class BinaryLog:
    """A file: the last transaction before it, and those that it has."""

    before: int
    transactions: tuple[Transaction, ...]

    @property
    def last(self) -> int:
        return self.transactions[-1].number if self.transactions else self.before

    @property
    def last_time(self) -> int:
        return self.transactions[-1].time if self.transactions else 0


def read_log(content: Content) -> BinaryLog:
    """Return what a file has. A transaction without its end, after a crash, does not count: it was not committed.

    Raises: ArchiveError when this is no binary log.
    """
    if content[: len(_MAGIC)] != _MAGIC:
        raise ArchiveError("this is no binary log")
    before, found = 0, list[Transaction]()
    current: tuple[int, int, int, bool] | None = None  # number, time, start, whether one statement ends it
    position = len(_MAGIC)
    while position + _HEADER.size <= len(content):
        time, kind, _, length, _, _ = _HEADER.unpack_from(content, position)
        body, end = position + _HEADER.size, position + length
        if length < _HEADER.size or end > len(content):
            break
        if kind == _GTID_LIST:
            before = max(before, _last_number(content, body))
        elif kind == _GTID:
            number, domain, flags = _TRANSACTION.unpack_from(content, body)
            current = (number, time, position, bool(flags & _STANDALONE_FLAG)) if domain == DOMAIN else None
        elif current is not None and _is_end(kind, content, body, end, standalone=current[3]):
            found.append(Transaction(*current[:3], end))
            current = None
        position = end
    return BinaryLog(before, tuple(found))


def _last_number(content: Content, body: int) -> int:
    """Return the last transaction of a list of states."""
    (count,) = struct.unpack_from("<I", content, body)
    states = [_STATE.unpack_from(content, body + 4 + index * _STATE.size) for index in range(count & 0xFFFFFFF)]
    return max((number for domain, _, number in states if domain == DOMAIN), default=0)


def _is_end(kind: int, content: Content, body: int, end: int, *, standalone: bool) -> bool:
    """Report whether an event ends a transaction."""
    if kind in (_XID, _XA_PREPARE):
        return True
    if kind not in (_QUERY, _COMPRESSED_QUERY):
        return False
    return standalone or _COMMIT in (
        content[max(body, end - len(_COMMIT)) : end],
        content[max(body, end - 11) : end - 4],
    )
