"""How busy the machine is with other programs than this one and its children (Linux)."""

from __future__ import annotations

import os
import time
from pathlib import Path

__all__ = ["MachineLoad"]

_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE, _IOWAIT, _GUEST = 3, 4, 8


class MachineLoad:
    """The CPU time of all cores since this object was created, without that of this process and its descendants."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._busy, self._own = _busy_ticks(), _own_ticks()

    def foreign_cores(self) -> float:
        """Return how many cores other programs, and other virtual machines, used on average."""
        elapsed = max(time.monotonic() - self._start, 1 / _TICKS)
        foreign = (_busy_ticks() - self._busy) - (_own_ticks() - self._own)
        return max(0.0, foreign / _TICKS / elapsed)


def _busy_ticks() -> int:
    """Return the ticks that were neither idle nor waiting; stolen ones are busy, guests are in user time already."""
    ticks = [int(one) for one in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return sum(ticks[:_GUEST]) - ticks[_IDLE] - ticks[_IOWAIT]


def _own_ticks() -> int:
    """Return the ticks of this process and its descendants, with those that have ended and were waited for."""
    found = {int(one.name): one for one in Path("/proc").iterdir() if one.name.isdigit()}
    stats = {pid: stat for pid, path in found.items() if (stat := _stat(path))}
    own, known = {os.getpid()}, -1
    while len(own) != known:
        known = len(own)
        own |= {pid for pid, stat in stats.items() if int(stat[1]) in own}
    return sum(sum(int(one) for one in stats[pid][11:15]) for pid in own if pid in stats)


def _stat(process: Path) -> list[str]:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
