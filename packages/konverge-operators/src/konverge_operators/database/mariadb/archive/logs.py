"""The archived log: files of the binary log of whichever member accepted writes, one history in all.

1. Files of two members may overlap. One that begins after the last transaction that is known is a gap, and a gap ends a
   recovery: it never looks like the end of the log.
2. A damaged file ends a recovery too, and so does a last one that is missing: `log.json` says how far the log goes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Final

from konverge_operators.database.archive.stores import ArchiveError, Store
from konverge_operators.database.mariadb.archive.binary_logs import BinaryLog, Content, read_log

__all__ = [
    "ArchivedLog",
    "LogEnd",
    "Piece",
    "delete_older_logs",
    "find_gap",
    "find_logs",
    "find_pieces",
    "put_end",
    "put_log",
    "read_end",
]

_NAME: Final = re.compile(r"([0-9]{20})-([0-9]{20})-([0-9]+)-([0-9a-f]{64})\.gz")


@dataclass(frozen=True)
class ArchivedLog:
    """A file of the archive: the last transaction before it, and its last one with the second of its commit."""

    key: str
    before: int
    last: int
    last_time: int
    sha256: str


@dataclass(frozen=True)
class LogEnd:
    """How far the log goes: every transaction that was committed before a time is there, and `last` is the last one.

    `last_time` is the second of its commit: a member whose transaction of that number has another one has lost writes.
    """

    time: datetime
    last: int
    last_time: int = 0

    def document(self) -> bytes:
        return json.dumps({"time": self.time.isoformat(), "last": self.last, "last_time": self.last_time}).encode()


@dataclass(frozen=True)
class Piece:
    """The part of a file to replay: from one place to another one."""

    content: bytes
    start: int
    end: int


def put_log(store: Store, path: str, content: Content, log: BinaryLog) -> None:
    """Store a file of the log."""
    digest = hashlib.sha256(content).hexdigest()
    name = f"{log.before:020}-{log.last:020}-{log.last_time}-{digest}.gz"
    store.put(f"{path}/log/{name}", gzip.compress(content, 1, mtime=0))


def put_end(store: Store, path: str, end: LogEnd) -> None:
    """Store how far the log goes."""
    store.put(f"{path}/log.json", end.document())


def read_end(store: Store, path: str) -> LogEnd | None:
    """Return how far the log goes; None if nothing was archived."""
    key = f"{path}/log.json"
    if key not in [one.key for one in store.list(key)]:
        return None
    try:
        found = json.loads(store.get(key))
        return LogEnd(datetime.fromisoformat(found["time"]), int(found["last"]), int(found["last_time"]))
    except (ValueError, KeyError, TypeError) as error:
        raise ArchiveError(f"log.json is damaged: {error}") from error


def find_logs(store: Store, path: str) -> list[ArchivedLog]:
    """Return the files of the log, by their first transaction."""
    matches = ((one.key, _NAME.fullmatch(one.key.rpartition("/")[2])) for one in store.list(f"{path}/log/"))
    found = [ArchivedLog(key, int(one[1]), int(one[2]), int(one[3]), one[4]) for key, one in matches if one is not None]
    return sorted(found, key=lambda one: (one.before, one.last))


def find_gap(logs: Sequence[ArchivedLog]) -> tuple[int, int] | None:
    """Return the last transactions before and in the last gap, or None."""
    gap, position = None, logs[0].before if logs else 0
    for one in logs:
        if one.before > position:
            gap = (position, one.before)
        position = max(position, one.last)
    return gap


def find_pieces(store: Store, path: str, position: int, target: datetime | None) -> Iterator[Piece]:
    """Yield what follows a position, up to the end of the log, or to the last transaction of a second.

    Raises: ArchiveError when the log does not reach a position or the target without a gap.
    """
    end = read_end(store, path)
    if target is not None and (end is None or end.time < target):
        known = "there is no archived log" if end is None else f"the archived log ends at {end.time.isoformat()}"
        raise ArchiveError(f"{target.isoformat()} cannot be restored: {known}")
    limit = int(target.timestamp()) if target is not None else None
    for archived in find_logs(store, path):
        if archived.last <= position:
            continue
        if archived.before > position:
            raise _gap(position, archived.before)
        content = _read(store, archived)
        following = [one for one in read_log(content).transactions if one.number > position]
        wanted = list(takewhile(lambda one: limit is None or one.time <= limit, following))
        if wanted:
            yield Piece(content, wanted[0].start, wanted[-1].end)
        if len(wanted) < len(following):
            return
        position = archived.last
    if end is not None and position < end.last:
        raise _gap(position, end.last)


def delete_older_logs(store: Store, path: str, position: int) -> None:
    """Delete the files of the log that a dump at a position does not need."""
    for one in find_logs(store, path):
        if one.last <= position:
            store.delete(one.key)


def _gap(position: int, following: int) -> ArchiveError:
    return ArchiveError(
        f"the archived log lacks the transactions from {position + 1} to {following}:"
        " restore a backup from after them, or to a time before them"
    )


def _read(store: Store, archived: ArchivedLog) -> bytes:
    name = archived.key.rpartition("/")[2]
    try:
        content = gzip.decompress(store.get(archived.key))
    except (OSError, EOFError, zlib.error) as error:
        raise ArchiveError(f"{name} in the archive is damaged: {error}") from error
    if hashlib.sha256(content).hexdigest() != archived.sha256:
        raise ArchiveError(f"{name} in the archive is damaged: its checksum differs")
    return content
