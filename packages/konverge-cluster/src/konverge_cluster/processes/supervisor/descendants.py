"""The processes below a process, from /proc: sessions and process groups do not matter."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress

__all__ = ["descendants", "kill_descendants", "memory_of", "sample_descendants"]


def descendants(root: int) -> list[int]:
    """Return the pids of all processes below a process, parents first."""
    children: dict[int, list[int]] = defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError):
                children[_parent(int(name))].append(int(name))
    found: list[int] = []
    pending = list(children[root])
    while pending:
        pid = pending.pop(0)
        found.append(pid)
        pending += children[pid]
    return found


def sample_descendants(root: int) -> list[int]:
    """Return the pids of the processes below a process, without reading all of /proc.

    One that starts, or whose sibling ends, at this moment can be missing: use it to look again and again.
    """
    if not os.path.exists(f"/proc/{root}/task/{root}/children"):  # a kernel without these files, or no such process
        return descendants(root)
    found: list[int] = []
    pending = _children(root)
    while pending:
        pid = pending.pop(0)
        found.append(pid)
        pending += _children(pid)
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The name of the program is in parentheses and may contain anything, parentheses too.
        return int(file.read().rpartition(b")")[2].split()[1])


def kill_descendants(root: int, signal: int) -> int:
    """Send a signal to all processes below a process; return how many there are, zombies aside."""
    living = 0
    for pid in descendants(root):
        with suppress(OSError):
            os.kill(pid, signal)
            living += not _is_zombie(pid)
    return living


def _is_zombie(pid: int) -> bool:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")


def memory_of(pids: list[int]) -> int:
    """Return the memory of processes in bytes: anonymous memory of each, and shared memory once.

    Mapped files are not counted, since the kernel can drop them.
    """
    anonymous, shared = 0, 0
    for pid in pids:
        with suppress(OSError):
            fields = _status(pid)
            anonymous += fields.get("RssAnon", 0)
            shared = max(shared, fields.get("RssShmem", 0))
    return (anonymous + shared) * 1024


def _status(pid: int) -> dict[str, int]:
    found = {}
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name in ("RssAnon", "RssShmem"):
                found[name] = int(value.split()[0])
    return found
