"""One server process: launched on a leash, watched until it answers, stopped in order, its log at hand."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from konverge.errors import ControlPlaneError
from konverge.testing.leash import Leash

__all__ = ["Server", "free_port"]

TAIL_LINES = 15
POLL_INTERVAL = 0.02
PORT_TRIES = 5
# Below the ranges from which kernels pick ports of outgoing connections: nobody is handed one of these by chance, so
# a server that is down for a moment finds its own port free again.
PORTS = range(20000, 32000)


class PortTaken(ControlPlaneError):
    """The server died because another process listens on its port."""


class Server:
    """A program that listens on a port of loopback until it is stopped.

    `arguments(port)` is its command line, `answers(port)` says whether it is ready. `port` 0 means a free one, found at
    the first start and kept: a server that is started again comes back where it was.

    Promises:

    - `start` returns when the server is ready. When it dies first, or takes too long, that is a `ControlPlaneError`
      with the end of its log, and no process is left;
    - another process that was quicker to take the free port costs a new try, not an error;
    - after `stop` or `kill` the process, and all that it started, is gone. Both may be called at any time.
    """

    def __init__(
        self,
        program: Path,
        arguments: Callable[[int], list[str]],
        answers: Callable[[int], bool],
        *,
        leash: Leash,
        port: int = 0,
    ) -> None:
        self.name = program.name
        self.port = port
        self.log = leash.directory / f"{program.name}.log"
        self._program = program
        self._arguments = arguments
        self._answers = answers
        self._leash = leash
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id, while it is running."""
        return self._process.pid if self._process else None

    def start(self, *, deadline: float) -> None:
        """Launch it and wait until it is ready, at most until the monotonic clock shows `deadline`."""
        if self._process is not None:
            raise ControlPlaneError(f"start {self.name}: it runs already (stop it first)")
        if self.port and not _is_free(self.port):
            raise PortTaken(f"start {self.name}: {_taken(self.port)}")
        for tries_left in reversed(range(PORT_TRIES)):
            port = self.port or free_port()
            try:
                self._start_on(port, deadline)
            except PortTaken:
                if self.port or not tries_left:
                    raise
            else:
                self.port = port
                return

    def stop(self, patience: float = 2.0) -> None:
        """Ask it to end, and kill it when it has not after `patience` seconds."""
        if self._process is not None:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
        self.kill()

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._leash.strike_off(self._process)
            self._process = None

    def tail(self) -> str:
        """The end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:]) or "(nothing)"

    def _start_on(self, port: int, deadline: float) -> None:
        command = [str(self._program), *self._arguments(port)]
        self._process = self._leash.launch(command, log=self.log)
        try:
            self._wait_until_ready(self._process, port, deadline)
        except BaseException:
            self.kill()
            raise

    def _wait_until_ready(self, process: subprocess.Popen[bytes], port: int, deadline: float) -> None:
        while not self._answers(port):
            if process.poll() is not None:
                raise self._death(process.returncode, port)
            if time.monotonic() > deadline:
                raise ControlPlaneError(self._failure("it is not ready in time"))
            time.sleep(POLL_INTERVAL)

    def _death(self, code: int, port: int) -> ControlPlaneError:
        if "address already in use" in self.tail():
            return PortTaken(self._failure(_taken(port)))
        how = f"it exited with code {code}" if code >= 0 else f"signal {-code} ended it"
        return ControlPlaneError(self._failure(how))

    def _failure(self, what: str) -> str:
        return f"start {self.name}: {what}; the end of its log:\n{self.tail()}"

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


def free_port() -> int:
    """A port of loopback that nobody listens on right now."""
    for port in random.sample(PORTS, k=100):
        if _is_free(port):
            return port
    raise ControlPlaneError(f"find a free port: 100 of those between {PORTS.start} and {PORTS.stop} are all taken")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the servers do it: a port on which only closed connections linger counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _taken(port: int) -> str:
    return f"port {port} is taken (leave the port out to get a free one)"
