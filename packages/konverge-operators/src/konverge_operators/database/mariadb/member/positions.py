"""How far the data of a member is: from `grastate.dat`, or from the server's own recovery after a crash."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from konverge_operators.database.mariadb.member.decisions import EMPTY, Position

__all__ = [
    "NO_UUID",
    "is_transfer_unfinished",
    "mark_safe",
    "parse_recovery",
    "read_state",
    "sync_directory",
    "write_history",
]

NO_UUID: Final = "00000000-0000-0000-0000-000000000000"
_STATE: Final = "grastate.dat"
_UUID: Final = re.compile(r"^uuid:\s*([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\s*$", re.MULTILINE)
_SEQNO: Final = re.compile(r"^seqno:[ \t]*(-?[0-9]+)\s*$", re.MULTILINE)
_RECOVERED: Final = re.compile(r"Recovered position: ?([0-9a-f-]{36}):(-?[0-9]+)")


def read_state(data: Path, *, is_complete: bool = False) -> Position | None:
    """Return the position of a server that was stopped; None when it has to be recovered.

    That is so after a crash, and when data has no state that can be read. A state without a history means that the data
    is not complete: there is one before all data is fetched from another member, and until that is done. Meanwhile the
    recovery of the server would report the position of the other member. Galera writes the same state while a statement
    changes a table; `is_complete` says that the data was complete when the server was last seen, so that it is this.
    """
    if is_transfer_unfinished(data):
        return EMPTY
    found = _read(data)
    if found is None:
        return None if (data / "ibdata1").exists() else EMPTY
    if found.uuid == NO_UUID:
        return None if is_complete else EMPTY
    return found if found.seqno >= 0 else None


def is_transfer_unfinished(data: Path) -> bool:
    """Report whether all data was being fetched from another member."""
    return (data / "sst_in_progress").exists()


def parse_recovery(output: str) -> Position | None:
    """Return the position that `mariadbd --wsrep-recover` has printed; None if it has printed none."""
    found = _RECOVERED.findall(output)
    if not found:
        return None
    uuid, seqno = found[-1]
    return Position(uuid, int(seqno)) if uuid != NO_UUID else EMPTY


def write_history(data: Path, uuid: str) -> None:
    """Write the state of a server that has crashed, unless there is one that can be read.

    Without it the server would ignore the position that it is started with, and begin a new history.
    """
    if _read(data) is None:
        values = f"version: 2.1\nuuid:    {uuid}\nseqno:   -1\nsafe_to_bootstrap: 0\n"
        _replace(data, f"# GALERA saved state\n{values}")


def mark_safe(data: Path, uuid: str = "") -> None:
    """Let the server bootstrap from this data: it refuses that unless it was the last one to leave.

    `uuid` is the history that the data has, for a state without one.
    """
    path = data / _STATE
    if path.exists():
        text = re.sub(r"safe_to_bootstrap:.*", "safe_to_bootstrap: 1", path.read_text(errors="replace"))
        _replace(data, text.replace(NO_UUID, uuid or NO_UUID))


def _read(data: Path) -> Position | None:
    """Return what the state says; None if it is missing or not complete."""
    try:
        text = (data / _STATE).read_text(errors="replace")
    except FileNotFoundError:
        return None
    uuid, seqno = _UUID.search(text), _SEQNO.search(text)
    return Position(uuid[1], int(seqno[1])) if uuid and seqno else None


def _replace(data: Path, text: str) -> None:
    """Replace the state: after a crash of the machine there is the old one or the new one."""
    new = data / f"{_STATE}.new"
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.rename(data / _STATE)
    sync_directory(data)


def sync_directory(path: Path) -> None:
    """Let a crash of the machine not undo which files a directory has."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
