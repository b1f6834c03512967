"""The processes of this machine, from /proc."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def processes_with(word: str) -> list[int]:
    """Return the processes whose command line has a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if word.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found
