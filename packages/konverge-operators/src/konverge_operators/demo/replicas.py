"""Replicas of an operator as processes of this machine, which can be killed as pods can."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from konverge.cli.child_processes import ChildProcess

__all__ = ["Replicas", "replicas_of"]

_RESTARTS = 3
_PATIENCE = 15.0
_LINES = 12


class Replicas:
    """Processes of `konverge run`, each with a name and a log.

    Promises: one that ends without being told to is started anew by `look_after`, as a kubelet does, but not for ever;
    one that is killed stays dead; after `end`, or when this process is gone, none of them runs.

    `arguments` are those of `konverge run`, the target first. The environment is this process's, without what would
    be options of the command; the working directory is this one.
    """

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        self._arguments = ("run", *arguments)
        self._folder = folder
        self._running: dict[str, ChildProcess] = {}
        self._restarts = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Those that shall run."""
        return tuple(self._running)

    def start(self, name: str) -> None:
        """Start one; its name is the first part of its identity in an election."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("KONVERGE_")}
        with self._log(name).open("ab") as log:
            self._running[name] = ChildProcess(
                "konverge.cli.child", self._arguments, environment={**environment, "POD_NAME": name}, output=log
            )

    def kill(self, name: str) -> None:
        """End one as a power cut does: it has no time to say good-bye."""
        self._running.pop(name).kill()

    def look_after(self) -> None:
        """Start anew what ended by itself: one that lost its lease on a busy machine, for example.

        Raises: ChildProcessError when that happens again and again.
        """
        for name, process in list(self._running.items()):
            code = process.code()
            if code is None:
                continue
            self._restarts += 1
            if self._restarts > _RESTARTS:
                raise ChildProcessError(f"{name} ended by itself, with exit code {code}")
            self.start(name)

    def stop(self) -> dict[str, int]:
        """Ask all for an orderly end, wait for it, and give their exit codes."""
        for process in self._running.values():
            process.terminate()
        codes = {name: process.wait(_PATIENCE) for name, process in self._running.items()}
        self._running.clear()
        return codes

    def end(self) -> None:
        """Kill what still runs."""
        for name in self.names:
            self.kill(name)

    def last_words(self) -> str:
        """Give the end of each log, for people who look for a reason."""
        told = []
        for log in sorted(self._folder.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-_LINES:]
            told += [f"--- {log.stem}", *lines]
        return "\n".join(told)

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"


@contextmanager
def replicas_of(arguments: Sequence[str], folder: Path) -> Iterator[Replicas]:
    """Give replicas that are ended with the block, however it ends."""
    replicas = Replicas(arguments, folder)
    try:
        yield replicas
    finally:
        replicas.end()
