"""One server process: started under a process guard, polled until it is ready, stopped in order, with its log."""

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
from konverge.testing.process_guard import ProcessGuard

__all__ = ["Server", "free_port"]

TAIL_LINES = 15
POLL_INTERVAL = 0.02
PORT_ATTEMPTS = 5
# Below the ranges from which kernels pick ports of outgoing connections. No other process gets one of these by chance,
# so a server that is down for a moment finds its own port still free.
PORTS = range(20000, 32000)


class PortInUse(ControlPlaneError):
    """The server exited because another process listens on its port."""


class Server:
    """A program that listens on a port of loopback until it is stopped.

    `arguments(port)` is its command line, `is_ready(port)` reports whether it is ready. `port` 0 means a free one,
    chosen at the first start and reused: a restarted server has the same port.

    Promises:

    - `start` returns when the server is ready. When it exits first, or takes too long, that is a `ControlPlaneError`
      with the end of its log, and no process is left;
    - when another process binds the free port first, the server is started again on another one;
    - after `stop` or `kill` the process and its children have ended. Both may be called at any time.
    """

    def __init__(
        self,
        program: Path,
        arguments: Callable[[int], list[str]],
        is_ready: Callable[[int], bool],
        *,
        guard: ProcessGuard,
        port: int = 0,
    ) -> None:
        self.name = program.name
        self.port = port
        self.log = guard.directory / f"{program.name}.log"
        self._program = program
        self._arguments = arguments
        self._is_ready = is_ready
        self._guard = guard
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id, while it is running."""
        return self._process.pid if self._process else None

    def start(self, *, deadline: float) -> None:
        """Start it and wait until it is ready, at most until `deadline` of the monotonic clock."""
        if self._process is not None:
            raise ControlPlaneError(f"start {self.name}: it is already running (stop it first)")
        if self.port and not _is_free(self.port):
            raise PortInUse(f"start {self.name}: {_in_use(self.port)}")
        for attempts_left in reversed(range(PORT_ATTEMPTS)):
            port = self.port or free_port()
            try:
                self._start_on(port, deadline)
            except PortInUse:
                if self.port or not attempts_left:
                    raise
            else:
                self.port = port
                return

    def stop(self, timeout: float = 2.0) -> None:
        """Terminate it, and kill it when it has not ended after `timeout` seconds."""
        if self._process is not None:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout)
        self.kill()

    def kill(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._guard.unregister(self._process)
            self._process = None

    def tail(self) -> str:
        """Return the end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:]) or "(nothing)"

    def _start_on(self, port: int, deadline: float) -> None:
        command = [str(self._program), *self._arguments(port)]
        self._process = self._guard.start(command, log=self.log)
        try:
            self._wait_until_ready(self._process, port, deadline)
        except BaseException:
            self.kill()
            raise

    def _wait_until_ready(self, process: subprocess.Popen[bytes], port: int, deadline: float) -> None:
        while not self._is_ready(port):
            if process.poll() is not None:
                raise self._exit_error(process.returncode, port)
            if time.monotonic() > deadline:
                raise ControlPlaneError(self._message("it is not ready in time"))
            time.sleep(POLL_INTERVAL)

    def _exit_error(self, code: int, port: int) -> ControlPlaneError:
        if "address already in use" in self.tail():
            return PortInUse(self._message(_in_use(port)))
        reason = f"it exited with code {code}" if code >= 0 else f"signal {-code} ended it"
        return ControlPlaneError(self._message(reason))

    def _message(self, reason: str) -> str:
        return f"start {self.name}: {reason}; the end of its log:\n{self.tail()}"

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


def free_port() -> int:
    """Return a port of loopback that no process listens on right now."""
    for port in random.sample(PORTS, k=100):
        if _is_free(port):
            return port
    raise ControlPlaneError(f"find a free port: 100 ports between {PORTS.start} and {PORTS.stop} are all in use")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the servers do: a port with connections in TIME_WAIT only is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _in_use(port: int) -> str:
    return f"port {port} is in use (leave the port out to get a free one)"
