"""Commands of konverge as processes: what they say, how they end, and what they leave behind."""

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
    """A command in a session of its own, with a folder for temporary files; it ends when the test run is killed."""

    def __init__(self, *arguments: str, folder: Path, temporary: Path) -> None:
        self.folder = folder
        self.temporary = temporary
        read_end, self._write_end = os.pipe()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "konverge.cli.child", *arguments],
                cwd=folder,
                env={**os.environ, "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"},
                stdin=read_end,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        finally:
            os.close(read_end)

    def read_until(self, words: str) -> str:
        """Read lines until one has these words in it, and give all of them."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if words in line:
                return "".join(lines)
        raise AssertionError("".join(lines))

    def rest(self) -> str:
        """Give what it says until it has ended."""
        told, _ = self.process.communicate(timeout=LIMIT)
        return told

    def end(self, number: signal.Signals) -> str:
        """Send a signal, and give what it says until it has ended."""
        self.process.send_signal(number)
        return self.rest()

    @property
    def processes(self) -> list[int]:
        """Those that it started and itself, as far as they run."""
        return processes_of(self.process.pid)

    def left_behind(self) -> list[str]:
        """Give the temporary files that are left, and a word when a process is."""
        files = sorted(path.name for path in self.temporary.iterdir())
        return [*files, "a process"] if self.processes else files

    def wait_until_nobody_runs(self) -> None:
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
def program(*arguments: str, folder: Path, temporary: Path) -> Iterator[Program]:
    """Start a command; whatever becomes of it, nothing of it runs in the end."""
    temporary.mkdir(exist_ok=True)
    started = Program(*arguments, folder=folder, temporary=temporary)
    try:
        yield started
    finally:
        started.close()


def processes_of(session: int) -> list[int]:
    """Give the processes of a session that run; one that only waits for its parent to take notice does not."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,sess=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return [int(pid) for pid, found, state in rows if int(found) == session and not state.startswith("Z")]
