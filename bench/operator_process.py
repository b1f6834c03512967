"""An operator as a process of its own, looked at from outside: CPU time, memory, and when its reconciles began."""

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
    """Give the CPU seconds that a process has used, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class OperatorProcess:
    """Runs while the `with` block runs, and is then asked to end by SIGTERM.

    Its files are in `directory`: what it prints, and the moments at which its reconciles began.
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
            # Compiled once, as an installed operator is, whatever the environment of the benchmark says.
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "konverge-bench-compiled"),
        }

    def __enter__(self) -> OperatorProcess:
        self.began = time.time()
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
        """Make sure that it still runs.

        Raises: SystemExit with the end of its log.
        """
        if self._process.poll() is not None:
            raise SystemExit(f"{self._command} ended with {self._process.returncode}:\n{self._log.read_text()[-3000:]}")

    def cpu(self) -> float:
        """Give the CPU seconds that it has used, user and system."""
        return cpu_of(self._process.pid)

    def peak(self) -> float:
        """Give the most memory that it ever had, in bytes."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))

    def stamps(self, *, since: float = 0.0) -> list[tuple[str, int, float]]:
        """Give name, generation and moment of each reconcile that began, in order."""
        if not self._stamps.exists():
            return []
        lines = (line.split() for line in self._stamps.read_text().splitlines())
        found = ((name, int(generation), float(moment)) for name, generation, moment in lines)
        return [one for one in found if one[2] >= since]
