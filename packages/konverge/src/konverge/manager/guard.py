"""For how long this process may still write: the clock that counts suspension, and the guard that asks it.

The guard is what the workers' client asks before each write (`Client(guard=...)`). It is the last line of promise L2: a
process that was frozen, or a machine that slept, finds it shut when it wakes up, before anybody has told it so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeAlias

__all__ = ["Clock", "Guard", "boot_clock", "usual_clock"]

Clock: TypeAlias = Callable[[], float]
"""Seconds since some moment in the past; it never goes back."""

_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", None)
_NEVER: Final = float("-inf")
_SAME_CLOCK: Final = 1.0  # seconds; two readings of one clock are closer


def boot_clock() -> float:
    """Give the seconds since this machine started, those it slept through included.

    Where the system has no such clock it is the monotonic one, which stands still in sleep.
    """
    return time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)


def usual_clock() -> Clock:
    """Give the clock for leases: the boot clock, or, on a loop with a time of its own (virtual time), that."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return boot_clock
    return boot_clock if abs(loop.time() - time.monotonic()) < _SAME_CLOCK else loop.time


class Guard:
    """Gives the seconds that a write may still run, 0 for somebody who does not lead.

    Promises: it is shut until it is opened; it shuts by itself when its time is over, whatever the process does
    meanwhile; any thread may ask it. Only the elector opens and shuts it.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or usual_clock()
        self._until = _NEVER

    def __call__(self) -> float:
        return max(0.0, self._until - self.clock())

    def open(self, until: float) -> None:
        """Allow writes until that moment of the guard's clock."""
        # One store of one value: a thread that asks meanwhile sees the old moment or the new one.
        self._until = until

    def shut(self) -> None:
        """Allow no more writes."""
        self._until = _NEVER
