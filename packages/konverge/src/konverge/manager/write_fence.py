"""The write fence: how long this process may still write, measured on a clock that counts suspension.

The client of the workers calls the fence before each write (`Client(guard=...)`). The fence is the last line of promise
L2: after a process was frozen, or a machine was suspended, it is closed before any task of the process runs again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeAlias

__all__ = ["Clock", "WriteFence", "boot_clock", "default_clock"]

Clock: TypeAlias = Callable[[], float]
"""Seconds since some moment in the past; the value never decreases."""

_BOOTTIME: Final = getattr(time, "CLOCK_BOOTTIME", None)
_NEVER: Final = float("-inf")
_SAME_CLOCK: Final = 1.0  # seconds; two readings of the same clock differ by less


def boot_clock() -> float:
    """Return the seconds since this machine booted, including the time that it was suspended.

    On systems without such a clock this is the monotonic clock, which stops during suspension.
    """
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


def default_clock() -> Clock:
    """Return the clock for leases: the boot clock, or the loop's clock when the loop runs in virtual time."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return boot_clock
    return boot_clock if abs(loop.time() - time.monotonic()) < _SAME_CLOCK else loop.time


class WriteFence:
    """Returns the seconds that a write may still take, 0 when this process is not the leader.

    Promises: the fence is closed until it is opened; it closes by itself at its deadline, whatever the process does
    meanwhile; any thread may call it. Only the elector opens and closes it.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or default_clock()
        self._deadline = _NEVER

    def __call__(self) -> float:
        return max(0.0, self._deadline - self.clock())

    def open(self, deadline: float) -> None:
        """Allow writes until `deadline`, a time of the fence's clock."""
        # One assignment of one value: a concurrent call from another thread sees the old deadline or the new one.
        self._deadline = deadline

    def close(self) -> None:
        """Allow no more writes."""
        self._deadline = _NEVER
