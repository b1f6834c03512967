"""Processes that a command starts, and that never outlive it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

__all__ = ["ChildProcess"]


class ChildProcess:
    """A module of konverge that runs as a process.

    Promises: it ends within seconds when this process is gone, also when that was killed (`konverge.cli.child` says
    how; the module must call `end_with_parent`). Files in the working directory do not stand in for modules of the
    standard library, whatever they are called. `output` takes all that it prints; this terminal unless given.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        output: IO[bytes] | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT if output is not None else None,
        )
        self.pid = self._process.pid

    def code(self) -> int | None:
        """Give the exit code of a process that has ended."""
        return self._ended(self._process.poll())

    def terminate(self) -> None:
        """Ask for an orderly end."""
        self._process.terminate()

    def kill(self) -> int:
        """End it as a power cut does: it has no time to say good-bye."""
        self._process.kill()
        return self.wait()

    def wait(self, patience: float | None = None) -> int:
        """Wait for its end, and kill it when that takes longer than `patience` seconds; give the exit code."""
        try:
            code = self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._ended(code)
        return code

    def _ended(self, code: int | None) -> int | None:
        # Not before: a pipe that closes asks for an end too, and who is asked twice does not end in order.
        if code is not None and self._process.stdin is not None:
            self._process.stdin.close()
        return code
