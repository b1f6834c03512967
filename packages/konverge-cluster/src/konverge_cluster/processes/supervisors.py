"""The runtime's side of a supervisor: start it, run commands in its pod, receive what happened to them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import konverge_cluster

__all__ = ["Command", "Exit", "Mount", "Supervisor"]

_BOOT: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from konverge_cluster.processes.supervisor.program import main; main()"
)
_SOURCES: Final = str(Path(konverge_cluster.__file__).parent.parent)
_MESSAGE_BYTES: Final = 65536
_KEPT_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH")
_READY_SECONDS: Final = 60.0
_END_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Mount:
    """A path of the host that a container sees at another path."""

    source: str
    target: str
    readonly: bool = False


@dataclass(frozen=True, kw_only=True)
class Command:
    """A program to run in a pod.

    `root` is the mount point of its root directory, "" without namespaces. `log` is the file of its output, "" when
    descriptors are passed. `memory` is its limit in bytes, 0 for none. `join` is the process whose namespaces it
    enters, 0 for new ones. `uid` None keeps the user.
    """

    id: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str = "/"
    uid: int | None = None
    gid: int | None = None
    groups: Sequence[int] = ()
    root: str = ""
    mounts: Sequence[Mount] = ()
    log: str = ""
    log_limit: int = 10 * 1024 * 1024
    memory: int = 0
    join: int = 0
    tty: bool = False


@dataclass(frozen=True)
class Exit:
    """How a command ended. `error` is set when it could not be started."""

    code: int
    error: str = ""
    out_of_memory: bool = False


@dataclass
class Running:
    """A command that was passed to a supervisor. `pid` is 0 until it has started."""

    id: str
    started: asyncio.Future[int]
    exited: asyncio.Future[Exit]
    changed: Callable[[], None] = field(default=lambda: None)

    @property
    def pid(self) -> int:
        """The first process of the command, 0 until it has started or when it could not be."""
        return self.started.result() if self.started.done() and not self.started.cancelled() else 0

    @property
    def exit(self) -> Exit | None:
        """How it ended, None while it runs."""
        return self.exited.result() if self.exited.done() else None


class Supervisor:
    """A running supervisor.

    Promises: every command that was passed to it ends with an `Exit`, also when the supervisor is killed; after `close`
    no process of the pod is left.
    """

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self.namespaces = False
        self.reason = ""
        self._process = process
        self._control = control
        self._running: dict[str, Running] = {}
        self._mounts: dict[str, asyncio.Future[str]] = {}
        self._ready: asyncio.Future[None] = loop.create_future()
        self._lost: asyncio.Future[None] = loop.create_future()
        self._gone: asyncio.Future[None] = loop.create_future()
        self._descriptor = os.pidfd_open(process.pid)
        loop.add_reader(control, self._receive)
        loop.add_reader(self._descriptor, self._reap)

    @classmethod
    async def start(cls, *, namespaces: bool) -> Supervisor:
        """Start a supervisor; `namespaces` of the result reports whether it could get them.

        Raises: OSError when it does not start.
        """
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            process = _start_program(other, "namespaces" if namespaces else "paths")
        own.setblocking(False)
        supervisor = cls(process, own)
        try:
            async with asyncio.timeout(_READY_SECONDS):
                await supervisor._ready
        except BaseException:
            await supervisor.close()
            raise
        return supervisor

    @property
    def pid(self) -> int:
        """The process of the supervisor."""
        return self._process.pid

    @property
    def is_lost(self) -> bool:
        """Whether the supervisor has ended; its shims may still hold the socket."""
        if self._lost.done() or self._gone.done():
            return True
        return os.waitid(os.P_PIDFD, self._descriptor, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def run(
        self, command: Command, descriptors: Sequence[int] = (), *, changed: Callable[[], None] = lambda: None
    ) -> Running:
        """Run a command; `descriptors` are its standard input, output and error.

        `changed` is called when it has started and when it has exited.
        """
        loop = asyncio.get_running_loop()
        running = Running(command.id, loop.create_future(), loop.create_future(), changed)
        self._running[command.id] = running
        spec = os.memfd_create("konverge-command")
        try:
            os.write(spec, json.dumps(asdict(command)).encode())
            self._send({"do": "run"}, [spec, *descriptors])
        finally:
            os.close(spec)
        if self.is_lost:
            self._lose()
        return running

    def signal(self, command: str, number: int, *, all_processes: bool = False) -> None:
        """Send a signal to the first process of a command, or to all of them; SIGKILL always reaches all."""
        self._send({"do": "signal", "id": command, "signal": int(number), "all": all_processes})

    async def mount_tmpfs(self, path: str, *, size: int, mode: int) -> None:
        """Mount a file system in memory that all containers of the pod see.

        Raises: OSError when that fails.
        """
        mounted = self._mounts[path] = asyncio.get_running_loop().create_future()
        self._send({"do": "tmpfs", "id": path, "path": path, "size": size, "mode": mode})
        if error := await mounted:
            raise OSError(error)

    async def close(self) -> None:
        """Kill every process of the pod, and wait until they are gone; a second call does nothing."""
        if not self._lost.done():
            self._control.shutdown(socket.SHUT_WR)
        try:
            async with asyncio.timeout(_END_SECONDS):
                await asyncio.shield(self._gone)
        except TimeoutError:
            self._process.kill()
            await asyncio.shield(self._gone)
        self._lose()

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._process.wait()
        self._gone.set_result(None)

    # Messages

    def _send(self, message: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
        with suppress(OSError):  # the supervisor has ended: the reader reports that
            socket.send_fds(self._control, [json.dumps(message).encode()], list(descriptors))

    def _receive(self) -> None:
        try:
            body = self._control.recv(_MESSAGE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            body = b""
        if body:
            self._handle(json.loads(body))
        else:
            self._lose()

    def _handle(self, message: Mapping[str, Any]) -> None:
        event, name = message["event"], message["id"]
        if event == "ready":
            self.namespaces, self.reason = message["namespaces"], message["error"]
            self._ready.set_result(None)
        elif event == "mounted":
            self._mounts.pop(name).set_result(message["error"])
        elif event == "started" and name in self._running:
            self._running[name].started.set_result(message["pid"])
            self._running[name].changed()
        elif event == "exited":
            self._end(name, Exit(message["code"], message["error"], message["out_of_memory"]))

    def _end(self, name: str, exit_: Exit) -> None:
        running = self._running.pop(name, None)
        if running is None:
            return
        if not running.started.done():
            running.started.set_result(0)
        running.exited.set_result(exit_)
        running.changed()

    def _lose(self) -> None:
        """Report the end of everything: the supervisor has ended."""
        if self._lost.done() and not self._running:
            return
        if not self._lost.done():
            self._lost.set_result(None)
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()
        if not self._ready.done():
            self._ready.set_exception(OSError(f"the supervisor of a pod exited with code {self._process.poll()}"))
        for future in self._mounts.values():
            future.set_result("the supervisor of the pod has ended")
        self._mounts.clear()
        for name in list(self._running):
            self._end(name, Exit(128 + signal.SIGKILL))


def _start_program(control: socket.socket, mode: str) -> subprocess.Popen[bytes]:
    """Start the program of a supervisor, in its own session: Ctrl-C is for the runtime, which then ends the pods."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _BOOT, _SOURCES, str(control.fileno()), mode],
        pass_fds=[control.fileno()],
        env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
        stdin=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
