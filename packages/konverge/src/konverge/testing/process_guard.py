"""Clean up after a control plane when the process that started it is gone, however it ended.

A test run can end without running any of its own code: kill -9, a crash of the interpreter, a closed terminal. So a
second process, the cleanup process, holds the read end of a pipe. The kernel closes the write end when the test run
dies; the cleanup process then kills the servers and removes their directory.

Linux's parent-death signal is not used: it fires when the *thread* that started the child ends, so a server restarted
from a worker thread would die with that thread; it exists on one system only; and it needs code between fork and exec,
which is not safe beside other threads.

Rules:

1. A server reports its own process id to the cleanup process before it executes the program, so no server ever runs
   that the cleanup process does not know.
2. A process id is unregistered only after the process was waited for: until then the kernel cannot reuse it.
3. This file is run as a script by a bare interpreter and imports the standard library only.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

__all__ = ["ProcessGuard"]

# Each server leads its own process group: a Ctrl-C in the terminal reaches the test run alone, which then stops its
# servers in order, and the children of a server are killed with it.
LAUNCHER = ("/bin/sh", "-c", 'echo "started $$"; exec "$@" >&2', "sh")


class ProcessGuard:
    """A temporary directory and the processes started with it, none of which outlives this process for long."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="konverge-"))
        read_end, self._write_end = os.pipe()
        try:
            self.cleanup_process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, str(self.directory)],
                stdin=read_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._write_end)
            _remove(self.directory)
            raise
        finally:
            os.close(read_end)

    def start(self, command: Iterable[str], *, log: Path) -> subprocess.Popen[bytes]:
        """Start a command in its own process group; its output goes to `log`."""
        # Nothing else of the caller's environment: etcd, for one, reads its flags from there too.
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.directory)}
        with log.open("wb") as output:
            return subprocess.Popen(
                [*LAUNCHER, *command],
                cwd=self.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._write_end,
                stderr=output,
                start_new_session=True,
            )

    def unregister(self, process: subprocess.Popen[bytes]) -> None:
        """Unregister a process that was waited for."""
        self._send(f"stopped {process.pid}")

    def close(self) -> None:
        """Remove the directory and end the cleanup process; every process was unregistered before."""
        _remove(self.directory)
        self._send("done")
        os.close(self._write_end)
        self.cleanup_process.wait()

    def _send(self, line: str) -> None:
        # A killed cleanup process is no reason to fail a test run that ends in order.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._write_end, f"{line}\n".encode())


def clean_up(lines: Iterable[str], directory: Path) -> None:
    """Track the started and stopped processes; when the lines end without "done", kill the rest and remove files."""
    groups: set[int] = set()
    for line in lines:
        word, _, pid = line.strip().partition(" ")
        if word == "done":
            return
        (groups.add if word == "started" else groups.discard)(int(pid))
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    _remove(directory)


def _remove(directory: Path) -> None:
    # A killed server may still write for a moment, into a directory that was just emptied.
    for _ in range(50):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        time.sleep(0.1)


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    clean_up(sys.stdin, Path(sys.argv[1]))
