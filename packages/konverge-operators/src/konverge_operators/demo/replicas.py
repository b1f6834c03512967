"""Replicas of an operator as local processes, which can be killed as pods can."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from konverge.cli.child_processes import ChildProcess

__all__ = ["Replicas", "run_replicas"]

_MAX_RESTARTS = 3
_STOP_TIMEOUT = 15.0
_TAIL_LINES = 12


class Replicas:
    """Processes of `konverge run`, each with a name and a log.

    Promises: `restart_exited` restarts a process that exited on its own, as a kubelet does, but only a few times;
    a process that was killed is not restarted; after `kill_all`, or when this process ends, none of them runs.

    `arguments` are those of `konverge run`, the target first. The processes inherit the environment, except variables
    that would be options of the command, and the working directory.
    """

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        self._arguments = ("run", *arguments)
        self._folder = folder
        self._running: dict[str, ChildProcess] = {}
        self._restarts = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the replicas that should be running."""
        return tuple(self._running)

    def start(self, name: str) -> None:
        """Start a replica. Its name is the first part of its leader election identity."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("KONVERGE_")}
        with self._log(name).open("ab") as log:
            self._running[name] = ChildProcess(
                "konverge.cli.child", self._arguments, environment={**environment, "POD_NAME": name}, output=log
            )

    def kill(self, name: str) -> None:
        """Kill a replica. It cannot clean up, as after a power failure."""
        self._running.pop(name).kill()

    def restart_exited(self) -> None:
        """Restart replicas that exited on their own, for example after losing the lease on an overloaded machine.

        Raises: ChildProcessError when that happens too often.
        """
        for name, process in list(self._running.items()):
            code = process.poll()
            if code is None:
                continue
            self._restarts += 1
            if self._restarts > _MAX_RESTARTS:
                raise ChildProcessError(f"{name} exited on its own, with exit code {code}")
            self.start(name)

    def stop(self) -> dict[str, int]:
        """Terminate all replicas, wait until they have shut down, and return their exit codes."""
        for process in self._running.values():
            process.terminate()
        codes = {name: process.wait(_STOP_TIMEOUT) for name, process in self._running.items()}
        self._running.clear()
        return codes

    def kill_all(self) -> None:
        """Kill the replicas that still run."""
        for name in self.names:
            self.kill(name)

    def log_tails(self) -> str:
        """Return the last lines of each log, to show why a step failed."""
        tails: list[str] = []
        for log in sorted(self._folder.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
            tails += [f"--- {log.stem}", *lines]
        return "\n".join(tails)

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"


@contextmanager
def run_replicas(arguments: Sequence[str], folder: Path) -> Generator[Replicas]:
    """Return replicas that are killed at the end of the block, however it ends."""
    replicas = Replicas(arguments, folder)
    try:
        yield replicas
    finally:
        replicas.kill_all()
