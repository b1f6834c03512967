"""What a Python contender says about itself: memory, CPU time, how often a second it can read."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["a_second", "cpu_seconds", "memory", "settle"]


def memory(name: str) -> float:
    """Give a line of /proc/self/status in bytes: VmRSS is now, VmHWM the most it ever was."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def cpu_seconds() -> float:
    """Give the CPU time of this process, user and system."""
    return time.process_time()


def settle() -> None:
    """Give back to the system what is not in use, so that only what is held counts."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def a_second(run: Callable[[], object]) -> float:
    """Say how often a second something can be done, over about a second."""
    run()
    began, times = time.perf_counter(), 0
    while time.perf_counter() - began < 1:
        run()
        times += 1
    return times / (time.perf_counter() - began)
