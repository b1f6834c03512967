"""The supervisor of one pod: starts a shim for each container, forwards signals, and ends with the runtime.

The runtime sends messages (JSON, with descriptors) over a socket of packets; shims answer on the same socket. When the
runtime ends, even by SIGKILL, the socket is closed: then every container of the pod is killed, and the supervisor
exits.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from konverge_cluster.processes.supervisor import kernel
from konverge_cluster.processes.supervisor.descendants import descendants, kill_descendants
from konverge_cluster.processes.supervisor.mounts import mount_tmpfs, unshare_mounts
from konverge_cluster.processes.supervisor.shim import TO_ALL, Shim

__all__ = ["Supervisor", "main"]

_MESSAGE_BYTES: Final = 65536
_MAX_DESCRIPTORS: Final = 8


class _Shim:
    """A running shim, as the supervisor sees it."""

    def __init__(self, name: str, pid: int, commands: int) -> None:
        self.name = name
        self.pid = pid
        self.commands = commands


class Supervisor:
    """The containers of one pod."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._shims: dict[str, _Shim] = {}
        self._ending = False
        self._wakeup, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        """Serve the runtime until it closes the socket and every container has ended."""
        while not self._ending or self._shims:
            sources: list[Any] = [self._wakeup] if self._ending else [self._wakeup, self._control]
            ready, _, _ = select.select(sources, [], [])
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
                self._reap()
            if self._control in ready:
                self._receive()
        kill_descendants(os.getpid(), signal.SIGKILL)

    def _receive(self) -> None:
        try:
            body, descriptors, _, _ = socket.recv_fds(self._control, _MESSAGE_BYTES, _MAX_DESCRIPTORS)
        except OSError:
            body, descriptors = b"", []
        if not body:
            self._end()
            return
        message = json.loads(body)
        if message["do"] == "run":
            self._start(descriptors)
        elif message["do"] == "signal":
            self._signal(message["id"], message["signal"] + (TO_ALL if message["all"] else 0))
        elif message["do"] == "tmpfs":
            self._mount(message)

    def _start(self, descriptors: list[int]) -> None:
        with open(descriptors[0], "rb") as file:
            file.seek(0)
            spec = json.load(file)
        reader, writer = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            os.close(writer)
            for other in self._shims.values():
                os.close(other.commands)  # else another shim would never see the end of its pipe
            signal.set_wakeup_fd(-1)
            Shim(spec, reader, self._control, descriptors[1:], join=spec["join"]).run()
        os.close(reader)
        for one in descriptors[1:]:
            os.close(one)
        self._shims[spec["id"]] = _Shim(spec["id"], pid, writer)

    def _signal(self, name: str, number: int) -> None:
        shim = self._shims.get(name)
        if shim is not None:
            with suppress(OSError):
                os.write(shim.commands, bytes([number]))

    def _mount(self, message: Mapping[str, Any]) -> None:
        error = ""
        try:
            mount_tmpfs(message["path"], size=message["size"], mode=message["mode"])
        except OSError as failure:
            error = str(failure)
        self._report({"id": message["id"], "event": "mounted", "error": error})

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                for shim in [one for one in self._shims.values() if one.pid == pid]:
                    self._ended(shim, failed=status != 0)

    def _ended(self, shim: _Shim, *, failed: bool) -> None:
        os.close(self._shims.pop(shim.name).commands)
        if failed:  # it was killed: its container has become a child of this process
            self._kill_orphans()
            self._report({"id": shim.name, "event": "exited", "code": 137, "error": "", "out_of_memory": False})

    def _kill_orphans(self) -> None:
        shims = {one.pid for one in self._shims.values()}
        spared = shims | {pid for shim in shims for pid in descendants(shim)}
        for pid in descendants(os.getpid()):
            if pid not in spared:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def _report(self, message: Mapping[str, Any]) -> None:
        with suppress(OSError):
            self._control.send(json.dumps(message).encode())

    def _end(self) -> None:
        self._ending = True
        for shim in self._shims.values():
            os.close(shim.commands)
            shim.commands = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def main() -> None:
    """Run a supervisor: arguments are the descriptor of its socket, and whether to use namespaces."""
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    error = _enter_namespaces() if sys.argv[2] == "namespaces" else "not asked for"
    kernel.set_subreaper()
    control.send(json.dumps({"id": "", "event": "ready", "namespaces": not error, "error": error}).encode())
    Supervisor(control).run()


def _enter_namespaces() -> str:
    """Enter namespaces of users (unless this is root) and of mounts; return why that is impossible."""
    uid, gid = os.getuid(), os.getgid()
    try:
        if uid != 0:
            kernel.unshare(kernel.USER_NAMESPACE)
            _map_user(uid, gid)
        unshare_mounts()
        _try_pid_namespace()
    except OSError as error:
        return str(error)
    return ""


def _map_user(uid: int, gid: int) -> None:
    for name, content in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(content)


def _try_pid_namespace() -> None:
    """Raise OSError if PID namespaces are not allowed; in a child, since the next child would become the first."""
    pid = os.fork()
    if pid == 0:
        try:
            kernel.unshare(kernel.PID_NAMESPACE)
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status:
        number = os.waitstatus_to_exitcode(status)
        raise OSError(number, f"unshare: {os.strerror(number)}")
