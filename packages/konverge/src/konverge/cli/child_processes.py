"""Child processes of a command. They never outlive it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

__all__ = ["ChildProcess"]


class ChildProcess:
    """A Python module that runs as a child process.

    Promises: it exits within seconds after this process, even if this one was killed (see `konverge.cli.child`; the
    module must call `exit_with_parent`). Files in the working directory never shadow modules of the standard library.
    `output` receives standard output and standard error; by default they go to this terminal.
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

    def poll(self) -> int | None:
        """Return the exit code, None while the process runs."""
        return self._close_pipe(self._process.poll())

    def terminate(self) -> None:
        """Send SIGTERM: the process shuts down."""
        self._process.terminate()

    def kill(self) -> int:
        """Send SIGKILL, which gives the process no time to clean up, and return the exit code."""
        self._process.kill()
        return self.wait()

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process exits, kill it after `timeout` seconds, and return the exit code."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._close_pipe(code)
        return code

    def _close_pipe(self, code: int | None) -> int | None:
        # Only after the exit: closing the pipe also sends SIGTERM, and a second signal aborts an orderly shutdown.
        if code is not None and self._process.stdin is not None:
            self._process.stdin.close()
        return code
