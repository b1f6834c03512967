"""How fast the processor is during a measurement: on a shared machine it changes by half within minutes.

A thread repeats a small, fixed piece of work and measures its own CPU time. Two figures of CPU time, measured one after
the other, can then be compared as if the processor had been equally fast.
"""

from __future__ import annotations

import json
import statistics
import threading
import time

__all__ = ["MachineSpeed"]

_DOCUMENT = json.dumps({f"name-{number}": {"labels": {"app": "shop"}, "ports": [80, number]} for number in range(50)})
_REPETITIONS = 5
_PAUSE = 0.2


class MachineSpeed:
    """Measures during a `with` block, at the cost of about one percent of a core."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> MachineSpeed:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def value(self) -> float:
        """Pieces of work per millisecond of CPU time: the mean over the block."""
        return _REPETITIONS / (statistics.fmean(self._times) * 1e3)

    def _run(self) -> None:
        while True:
            begin = time.thread_time()
            for _ in range(_REPETITIONS):
                json.loads(_DOCUMENT)
            self._times.append(time.thread_time() - begin)
            if self._stop.wait(_PAUSE):
                return
