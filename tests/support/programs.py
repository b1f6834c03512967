"""Commands of konverge as processes: their output, their exit, and what they leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["LIMIT", "Program", "processes_of", "program"]

LIMIT = 240.0


class Program:
    """A command in its own session, with a folder for temporary files; it ends when the test run is killed."""

    def __init__(self, *arguments: str, folder: Path, temporary: Path, variables: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.temporary = temporary
        read_end, self._write_end = os.pipe()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "konverge.cli.child", *arguments],
                cwd=folder,
                env={**os.environ, "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1", **(variables or {})},
                stdin=read_end,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        finally:
            os.close(read_end)

    def read_until(self, text: str) -> str:
        """Read lines until one contains the text, and return all of them."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if text in line:
                return "".join(lines)
        raise AssertionError("".join(lines))

    def rest(self) -> str:
        """Return the output up to the exit of the process."""
        output, _ = self.process.communicate(timeout=LIMIT)
        return output

    def end(self, number: signal.Signals) -> str:
        """Send a signal, and return the output up to the exit of the process."""
        self.process.send_signal(number)
        return self.rest()

    @property
    def processes(self) -> list[int]:
        """The running processes of the session: the command and what it started."""
        return processes_of(self.process.pid)

    def left_behind(self) -> list[str]:
        """Return the remaining temporary files, and "a process" if one still runs."""
        files = sorted(path.name for path in self.temporary.iterdir())
        return [*files, "a process"] if self.processes else files

    def wait_until_all_exited(self) -> None:
        never, deadline = threading.Event(), time.monotonic() + LIMIT
        while self.processes and time.monotonic() < deadline:
            never.wait(0.05)
        assert self.processes == []

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        os.close(self._write_end)


@contextmanager
def program(
    *arguments: str, folder: Path, temporary: Path, variables: dict[str, str] | None = None
) -> Iterator[Program]:
    """Start a command with these environment variables, and kill all its processes at the end of the block."""
    temporary.mkdir(exist_ok=True)
    started = Program(*arguments, folder=folder, temporary=temporary, variables=variables)
    try:
        yield started
    finally:
        started.close()


def processes_of(session: int) -> list[int]:
    """Return the running processes of a session, without zombies."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,sess=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [int(pid) for pid, found, state in rows if int(found) == session and not state.startswith("Z")]
