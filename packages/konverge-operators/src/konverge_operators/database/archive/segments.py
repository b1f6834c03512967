"""The archived log: files of PostgreSQL's WAL, each with its checksum in its key.

1. What is stored is never replaced. The same file again is success, another content under its name an error: two
   servers write to one archive.
2. A damaged file ends a recovery, and so does one that is missing while later ones are there. Neither looks like the
   end of the archive.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import zlib
from datetime import datetime
from pathlib import Path
from typing import Final

from konverge_operators.database.archive.stores import ArchiveError, Store, Stored

__all__ = ["delete_older_segments", "find_segment", "get_segment", "last_archived", "put_segment", "required_segments"]

_SEGMENT: Final = re.compile(r"[0-9A-F]{24}")
_POSITION: Final = slice(8, 24)
"""The part of the name without the timeline: order over timelines."""


def put_segment(store: Store, path: str, file: Path) -> None:
    """Store a file of the log."""
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    found = find_segment(store, path, file.name)
    if found is None:
        store.put(f"{_key(path, file.name)}{digest}.gz", gzip.compress(content, 1, mtime=0))
    elif _digest(found) != digest:
        raise ArchiveError(f"{file.name} is in the archive with another content: does another database write to it?")


def get_segment(store: Store, path: str, name: str, target: Path) -> bool:
    """Write a file of the log to a path; report whether the archive has it: if not, it ends before."""
    found = find_segment(store, path, name)
    if found is None:
        _require_end(store, path, name)
        return False
    try:
        content = gzip.decompress(store.get(found.key))
    except (OSError, EOFError, zlib.error) as error:
        raise ArchiveError(f"{name} in the archive is damaged: {error}") from error
    if hashlib.sha256(content).hexdigest() != _digest(found):
        raise ArchiveError(f"{name} in the archive is damaged: its checksum differs")
    temporary = target.with_name(f"{target.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(target)
    return True


def find_segment(store: Store, path: str, name: str) -> Stored | None:
    """Return a file of the log, None if it is not stored."""
    found = store.list(_key(path, name))
    if len(found) > 1:
        raise ArchiveError(f"{name} is in the archive twice")
    return found[0] if found else None


def last_archived(store: Store, path: str) -> datetime | None:
    """Return when the newest file of the log was stored."""
    return max((one.modified for one in store.list(f"{path}/wal/")), default=None)


def required_segments(timeline: int, start: str, end: str, segment_size: int) -> list[str]:
    """Return the files of a part of the log, from one position to another, such as 0/2000028."""
    first, last = (_number(one) // segment_size for one in (start, end))
    in_file = 0x100000000 // segment_size
    return [f"{timeline:08X}{one // in_file:08X}{one % in_file:08X}" for one in range(first, last + 1)]


def delete_older_segments(store: Store, path: str, first: str) -> int:
    """Delete the files of the log before one, on every timeline; return how many. Histories of timelines are kept."""
    deleted = 0
    for one in store.list(f"{path}/wal/"):
        name = one.key.rpartition("/")[2]
        if _SEGMENT.match(name) and name[_POSITION] < first[_POSITION]:
            store.delete(one.key)
            deleted += 1
    return deleted


def _require_end(store: Store, path: str, name: str) -> None:
    """Raise unless the archive ends before a file. PostgreSQL never asks for one from before the start of a timeline.

    Files of an older timeline after the start of a newer one are not replayed: what is missing there does not matter.
    """
    if not _SEGMENT.fullmatch(name):
        return
    times = {one.key.rpartition("/")[2].partition("-")[0]: one.modified for one in store.list(f"{path}/wal/")}
    segments = [one for one in times if _SEGMENT.fullmatch(one) and one[:8] >= name[:8]]
    later = sorted(one for one in segments if one[_POSITION] > name[_POSITION])
    is_abandoned = any(one[:8] > name[:8] and one[_POSITION] <= name[_POSITION] for one in segments)
    if later and not is_abandoned:
        before = max(
            (times[one] for one in times if _SEGMENT.fullmatch(one) and one[_POSITION] < name[_POSITION]), default=None
        )
        hint = f": restore a backup from after it, or to a time before {before.isoformat()}" if before else ""
        raise ArchiveError(f"{name} is missing in the archive, but {later[0]} is there{hint}")


def _key(path: str, name: str) -> str:
    return f"{path}/wal/{name[:16]}/{name}-"


def _digest(stored: Stored) -> str:
    return stored.key.rpartition("-")[2].removesuffix(".gz")


def _number(position: str) -> int:
    high, _, low = position.partition("/")
    return (int(high, 16) << 32) + int(low, 16)
