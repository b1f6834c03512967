"""The process beside a container: it starts the container, writes its log, limits its memory and ends all of it.

A shim is a fork of the supervisor of its pod. Rules that hold here:

1. When the first process of the container ends, every other process of it is killed.
2. When the pipe from the supervisor is closed, whatever the reason, every process of the container is killed.
3. Nothing escapes: with namespaces the kernel ends all processes of a PID namespace with its first one; without, the
   shim is the parent of every orphan.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import termios
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn

from konverge_cluster.processes.supervisor import kernel
from konverge_cluster.processes.supervisor.descendants import kill_descendants, memory_of, sample_descendants
from konverge_cluster.processes.supervisor.log_files import LogFile, OutputStream
from konverge_cluster.processes.supervisor.mounts import build_root, unshare_mounts

__all__ = ["TO_ALL", "Shim"]

TO_ALL: Final = 128
"""Added to the number of a signal that is meant for all processes of the container."""

_SAMPLE_SECONDS: Final = 0.2
_DRAIN_SECONDS: Final = 1.0
_READ_BYTES: Final = 65536
_START_ERROR: Final = 128
_STREAMS: Final = 3


class Shim:
    """One container, or one command that was executed in one.

    `spec` is what to run (see `konverge_cluster.processes.supervisors.Command`), `commands` the pipe from the
    supervisor (one byte is one signal), `reports` the socket to the runtime. `streams` are standard input, output and
    error. If there is only the first one, or none, the output goes to the log of the spec.
    """

    def __init__(
        self, spec: Mapping[str, Any], commands: int, reports: socket.socket, streams: list[int], *, join: int = 0
    ) -> None:
        self._spec = spec
        self._commands = commands
        self._reports = reports
        self._streams = streams
        self._join = join
        self._main = 0
        self._code: int | None = None
        self._killed_for_memory = False
        self._outputs: dict[int, OutputStream] = {}
        self._ordered = True  # whether the supervisor still holds its end of the pipe

    def run(self) -> NoReturn:
        """Run it to its end, report its exit code, and exit."""
        try:
            error = self._start()
            if error:
                self._report(event="exited", code=_START_ERROR, error=error, out_of_memory=False)
            else:
                self._report(event="started", pid=self._main)
                self._loop()
                self._end()
                self._report(event="exited", code=self._code, error="", out_of_memory=self._killed_for_memory)
        except BaseException:
            traceback.print_exc()
            kill_descendants(os.getpid(), signal.SIGKILL)
            os._exit(1)
        os._exit(0)

    def _report(self, **message: Any) -> None:
        with suppress(OSError):  # the runtime has ended: nobody needs it
            self._reports.send(json.dumps({"id": self._spec["id"], **message}).encode())

    # Start

    def _start(self) -> str:
        """Start the first process; return what went wrong."""
        kernel.set_subreaper()
        streams = self._streams if len(self._streams) == _STREAMS else self._open_log()
        failure_reader, failure = os.pipe2(os.O_CLOEXEC)
        try:
            self._enter_namespaces()
        except OSError as error:
            return str(error)
        self._main = os.fork()
        if self._main == 0:
            os.close(failure_reader)
            self._become_container(streams, failure)
        for one in (failure, *streams):
            os.close(one)
        with open(failure_reader, "rb") as file:
            return file.read().decode(errors="replace")

    def _open_log(self) -> list[int]:
        log = LogFile(self._spec["log"], self._spec["log_limit"])
        written = []
        for name in ("stdout", "stderr"):
            reader, writer = os.pipe2(os.O_CLOEXEC)
            self._outputs[reader] = OutputStream(name, log)
            written.append(writer)
        stdin = self._streams[0] if self._streams else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        return [stdin, *written]

    def _enter_namespaces(self) -> None:
        if not self._spec["root"]:
            return
        if not self._join:
            kernel.unshare(kernel.PID_NAMESPACE)
            unshare_mounts()
            return
        for name, flag in (("pid", kernel.PID_NAMESPACE), ("mnt", kernel.MOUNT_NAMESPACE)):
            descriptor = os.open(f"/proc/{self._join}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
            kernel.setns(descriptor, flag)
            os.close(descriptor)

    def _become_container(self, streams: list[int], failure: int) -> NoReturn:
        """In the new process: set up its surroundings and execute the program."""
        try:
            self._connect(streams)
            self._change_root()
            self._change_user()
            kernel.die_with_parent()
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(self._spec["cwd"])
            os.umask(0o022)
            self._execute(failure)
        except BaseException as error:
            os.write(failure, str(error).encode())
        os._exit(_START_ERROR)

    def _execute(self, failure: int) -> None:
        program, *_ = argv = self._spec["argv"]
        try:
            os.execvpe(program, argv, self._spec["env"])
        except OSError as error:
            os.write(failure, _describe(error, program).encode())

    def _connect(self, streams: list[int]) -> None:
        os.setsid()
        for target, source in enumerate(streams):
            os.dup2(source, target)
        if self._spec.get("tty"):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def _change_root(self) -> None:
        root = self._spec["root"]
        if root:
            if not self._join:
                build_root(root, self._spec["mounts"])
            os.chroot(root)
            os.chdir("/")

    def _change_user(self) -> None:
        if self._spec["uid"] is not None:
            os.setgroups(self._spec["groups"])
            os.setresgid(self._spec["gid"], self._spec["gid"], self._spec["gid"])
            os.setresuid(self._spec["uid"], self._spec["uid"], self._spec["uid"])

    # While it runs

    def _loop(self) -> None:
        """Copy output and deliver signals until the first process has ended."""
        wakeup, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._reap()  # it may have ended before the handler was set
        limit = self._spec["memory"]
        while self._code is None:
            sources = [wakeup, *self._outputs, *([self._commands] if self._ordered else ())]
            ready, _, _ = select.select(sources, [], [], _SAMPLE_SECONDS if limit else None)
            if wakeup in ready:
                os.read(wakeup, _READ_BYTES)
            for one in [one for one in ready if one in self._outputs]:
                self._copy(one)
            if self._commands in ready:
                self._obey(os.read(self._commands, 64))
            self._reap()
            if limit and self._code is None and memory_of(sample_descendants(os.getpid())) > limit:
                self._killed_for_memory = True
                self._kill_all()
        signal.set_wakeup_fd(-1)

    def _copy(self, descriptor: int) -> None:
        content = os.read(descriptor, _READ_BYTES)
        if content:
            self._outputs[descriptor].feed(content)
        else:
            self._outputs.pop(descriptor).finish()
            os.close(descriptor)

    def _obey(self, commands: bytes) -> None:
        if not commands:
            self._ordered = False
            self._kill_all()
        for number in commands:
            if number >= TO_ALL:
                kill_descendants(os.getpid(), number - TO_ALL)
            elif number == signal.SIGKILL:
                self._kill_all()
            else:
                with suppress(OSError):
                    os.kill(self._main, number)

    def _kill_all(self) -> None:
        kill_descendants(os.getpid(), signal.SIGKILL)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._main:
                    code = os.waitstatus_to_exitcode(status)
                    self._code = code if code >= 0 else 128 - code

    # End

    def _end(self) -> None:
        """Kill what is left of the container, and write the output that it had written."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        while kill_descendants(os.getpid(), signal.SIGKILL):
            self._reap()
            time.sleep(0.005)
        self._reap()
        while self._outputs and time.monotonic() < deadline:
            ready, _, _ = select.select(list(self._outputs), [], [], 0.0)
            if not ready:
                break
            for one in ready:
                self._copy(one)
        for output in self._outputs.values():
            output.finish()


def _describe(error: OSError, program: str) -> str:
    missing = isinstance(error, FileNotFoundError) and "/" not in program
    return f'exec: "{program}": {"executable file not found in $PATH" if missing else error.strerror}'
