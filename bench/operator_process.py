"""An operator in its own process, observed from outside: CPU time, memory, and the start times of its reconciles."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

__all__ = ["Contender", "OperatorProcess", "cpu_of"]

_TICKS = os.sysconf("SC_CLK_TCK")

Contender = tuple[str, list[str]]
"""A name and a command."""


def cpu_of(pid: int) -> float:
    """Return the CPU seconds that a process has used, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class OperatorProcess:
    """A process that runs during a `with` block; at the end it gets SIGTERM.

    `directory` contains its files: its output, and the start times of its reconciles.
    """

    def __init__(self, command: list[str], *, kubeconfig: Path, resync: float, directory: Path) -> None:
        self._command = command
        self._log = directory / "operator.log"
        self._stamps = directory / "stamps"
        self._stamps.unlink(missing_ok=True)
        self._environment = os.environ | {
            "KUBECONFIG": str(kubeconfig),
            "SHOP_RESYNC": f"{resync:g}",
            "SHOP_STAMPS": str(self._stamps),
            # Byte code is compiled once, as for an installed operator, regardless of the benchmark's environment.
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "konverge-bench-compiled"),
        }

    def __enter__(self) -> OperatorProcess:
        self.start_time = time.time()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def check(self) -> None:
        """Check that the process still runs.

        Raises: SystemExit with the end of its log.
        """
        if self._process.poll() is not None:
            raise SystemExit(f"{self._command} ended with {self._process.returncode}:\n{self._log.read_text()[-3000:]}")

    def cpu(self) -> float:
        """Return the CPU seconds that the process has used, user and system."""
        return cpu_of(self._process.pid)

    def peak(self) -> float:
        """Return the peak memory of the process in bytes."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))

    def stamps(self, *, since: float = 0.0) -> list[tuple[str, int, float]]:
        """Return name, generation and start time of each reconcile, in order."""
        if not self._stamps.exists():
            return []
        lines = (line.split() for line in self._stamps.read_text().splitlines())
        stamps = ((name, int(generation), float(start)) for name, generation, start in lines)
        return [one for one in stamps if one[2] >= since]
