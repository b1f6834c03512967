"""How far the data of a member is: from `grastate.dat`, or from the server's own recovery after a crash."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from konverge_operators.database.mariadb.member.decisions import EMPTY, Position

__all__ = ["NO_UUID", "is_transfer_unfinished", "mark_safe", "parse_recovery", "read_state"]

NO_UUID: Final = "00000000-0000-0000-0000-000000000000"
_STATE: Final = "grastate.dat"
_RECOVERED: Final = re.compile(r"Recovered position: ?([0-9a-f-]{36}):(-?[0-9]+)")


def read_state(data: Path) -> Position | None:
    """Return the position of a server that was stopped; None after a crash, when it has to be recovered.

    A file without a history means that the data is not complete: the server empties it before it fetches all data from
    another member, and while it does, its recovery reports the position of that member.
    """
    try:
        text = (data / _STATE).read_text()
    except FileNotFoundError:
        return EMPTY
    values = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    uuid, seqno = values.get("uuid", "").strip(), int(values.get("seqno", "-1"))
    if uuid in ("", NO_UUID) or is_transfer_unfinished(data):
        return EMPTY
    return Position(uuid, seqno) if seqno >= 0 else None


def is_transfer_unfinished(data: Path) -> bool:
    """Report whether all data was being fetched from another member."""
    return (data / "sst_in_progress").exists()


def parse_recovery(output: str) -> Position:
    """Return the position that `mariadbd --wsrep-recover` has printed."""
    found = _RECOVERED.findall(output)
    uuid, seqno = found[-1] if found else ("", "-1")
    return Position(uuid, int(seqno)) if uuid not in ("", NO_UUID) else EMPTY


def mark_safe(data: Path) -> None:
    """Let the server bootstrap from this data: it refuses that unless it was the last one to leave."""
    path = data / _STATE
    if path.exists():
        path.write_text(re.sub(r"safe_to_bootstrap:.*", "safe_to_bootstrap: 1", path.read_text()))
