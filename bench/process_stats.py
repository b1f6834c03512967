"""Statistics of the current process: memory, CPU time, calls per second."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["cpu_seconds", "memory", "per_second", "trim_memory"]


def memory(name: str) -> float:
    """Return a line of /proc/self/status in bytes: VmRSS is the current memory, VmHWM the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def cpu_seconds() -> float:
    """Return the CPU time of this process, user and system."""
    return time.process_time()


def trim_memory() -> None:
    """Return unused memory to the system, so that only memory in use is counted."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def per_second(run: Callable[[], object]) -> float:
    """Return how many calls per second are possible, measured over about one second."""
    run()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < 1:
        run()
        count += 1
    return count / (time.perf_counter() - start)
