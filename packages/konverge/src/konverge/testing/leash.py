"""End what is left of a control plane when the process that started it is gone, however it went.

A test run can end without running any of its own code: kill -9, a crash of the interpreter, a closed terminal. So the
cleaning is done by a second process, the guardian, that holds one end of a pipe. The kernel closes the other end when
the run dies; the guardian then kills the servers and removes their directory.

Linux's parent-death signal is not used: it fires when the *thread* that started the child ends, so a server restarted
from a worker thread would die with that thread; it exists on one system only; and it needs code between fork and exec,
which is not safe beside other threads.

Rules:

1. A server tells its own process id to the guardian before it becomes the server, so there is no moment in which one
   runs that the guardian does not know.
2. A process id is struck off only after the process was waited for: until then the kernel cannot give it to another.
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

__all__ = ["Leash"]

# Each server leads a process group of its own: a Ctrl-C in the terminal reaches the test run alone, which then stops
# its servers in order, and whatever a server started is killed with it.
LAUNCH = ("/bin/sh", "-c", 'echo "started $$"; exec "$@" >&2', "sh")


class Leash:
    """A temporary directory and the processes launched beside it, none of which outlives this process for long."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="konverge-"))
        read_end, self._write_end = os.pipe()
        try:
            self.guardian = subprocess.Popen(
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

    def launch(self, command: Iterable[str], *, log: Path) -> subprocess.Popen[bytes]:
        """Start a command in its own process group; all that it prints goes to `log`."""
        # Nothing else of the caller's environment: etcd, for one, takes any of its flags from there as well.
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.directory)}
        with log.open("wb") as output:
            return subprocess.Popen(
                [*LAUNCH, *command],
                cwd=self.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._write_end,
                stderr=output,
                start_new_session=True,
            )

    def strike_off(self, process: subprocess.Popen[bytes]) -> None:
        """Forget a process that was waited for."""
        self._tell(f"stopped {process.pid}")

    def release(self) -> None:
        """Remove the directory and send the guardian home; every process was struck off before."""
        _remove(self.directory)
        self._tell("done")
        os.close(self._write_end)
        self.guardian.wait()

    def _tell(self, line: str) -> None:
        # A guardian that somebody killed is no reason to fail a test run that ends in order.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._write_end, f"{line}\n".encode())


def guard(lines: Iterable[str], directory: Path) -> None:
    """Follow what is started and stopped; when the lines end without "done", end what is still there."""
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
    # A killed server may still be writing for a moment, which makes a directory that was just emptied full again.
    for _ in range(50):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            return
        time.sleep(0.1)


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    guard(sys.stdin, Path(sys.argv[1]))
