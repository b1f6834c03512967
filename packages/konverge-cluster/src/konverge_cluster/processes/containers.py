"""One container of a pod: its runs, probes, hooks and its end.

The pod decides when a container starts and stops (`process_pod`). This module does it, and keeps the state that is
reported. Everything that takes time is a task of the runtime; each change calls `changed`, so that the pod is synced.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from konverge_cluster.nodes.container_states import ContainerState, Terminated
from konverge_cluster.nodes.pod_lifecycle import PodEvent
from konverge_cluster.processes.images import LocalImage
from konverge_cluster.processes.probes import Answer, ProbeOptions, run_handler, run_probe
from konverge_cluster.processes.sandbox import Sandbox
from konverge_cluster.processes.supervisors import Command, Exit, Running

__all__ = ["ContainerHooks", "ProcessContainer"]

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]

_MESSAGE_BYTES: Final = 4096
_FALLBACK_BYTES: Final = 2048
_FALLBACK_LINES: Final = 80
_MINIMUM_GRACE: Final = 2.0
_OUTPUT_BYTES: Final = 65536
_BACKOFF_RESET: Final = 600.0
_MAX_BACKOFF: Final = 300.0


@dataclass(frozen=True)
class ContainerHooks:
    """What a container needs of its pod: tasks, a sync after a change, events, and the address."""

    spawn: Spawn
    changed: Callable[[], None]
    event: Callable[[PodEvent], None]
    address: str


@dataclass
class _Run:
    """A process of the container. `grace` is set once it is being stopped, `stdin` if it can be attached to."""

    command: Command
    running: Running
    started: bool = False
    ready: bool = False
    hook_done: bool = False
    grace: float | None = None
    failure: tuple[str, str] | None = None  # why the node ended it: reason and message
    stdin: int | None = None
    tasks: tuple[asyncio.Task[None], ...] = ()

    def close_stdin(self) -> None:
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None


class ProcessContainer:
    """A container that runs as a process. `state` is what is reported of it."""

    def __init__(self, spec: Mapping[str, Any], sandbox: Sandbox, hooks: ContainerHooks, state: ContainerState) -> None:
        self.name: str = spec["name"]
        self.state = state
        self.delay = 0.0  # before the next restart
        self.restart_at = datetime.fromtimestamp(0, UTC)
        self.pull_failed_at = datetime.fromtimestamp(0, UTC)
        self._spec = spec
        self._sandbox = sandbox
        self._hooks = hooks
        self._image: LocalImage | None = None
        self._run: _Run | None = None
        self._grace = 30.0

    # Properties that the pod reads

    @property
    def is_running(self) -> bool:
        """Whether it has a process, or one whose end is not yet reported."""
        return self._run is not None

    @property
    def is_stopping(self) -> bool:
        """Whether it is being stopped."""
        return self._run is not None and self._run.grace is not None

    @property
    def address(self) -> str:
        """The address of the pod, for probes."""
        return self._hooks.address

    @property
    def pid(self) -> int:
        """The first process, 0 while none runs."""
        return self._run.running.pid if self._run is not None else 0

    @property
    def stdin(self) -> int | None:
        """The descriptor of its standard input, None if it has none."""
        return self._run.stdin if self._run is not None else None

    def detach(self, run: int) -> None:
        """Close the standard input of a run if only one client may write to it (stdinOnce)."""
        if self._run is not None and self.state.restarts == run and self._spec.get("stdinOnce"):
            self._run.close_stdin()

    @property
    def next_run(self) -> int:
        """The number of restarts that the next run will have."""
        ended = self.state.terminated is not None or self.state.last_terminated is not None
        return self.state.restarts + ended

    # Start

    async def start(self, command: Command, image: LocalImage, now: datetime) -> None:
        """Start a run; the state becomes running, or terminated if the program cannot be executed."""
        self._image = image
        reader, writer = os.pipe2(os.O_CLOEXEC) if self._spec.get("stdin") else (None, None)
        running = self._sandbox.start(command, self._hooks.changed, stdin=reader)
        if reader is not None:
            os.close(reader)
        await asyncio.shield(running.started)
        self.state = self.state.start(now)
        self._remove_old_logs()
        run = self._run = _Run(command, running, stdin=writer)
        running.exited.add_done_callback(lambda _: run.close_stdin())
        if running.exit is None or not running.exit.error:
            self._hooks.event(PodEvent("Started", "Container started"))
            run.tasks = (self._hooks.spawn(self._accompany(run)),)

    def _remove_old_logs(self) -> None:
        old = self.state.restarts - 2
        if old >= 0:
            for path in (self._sandbox.log_path(self.name, old), self._sandbox.message_path(self.name, old)):
                path.unlink(missing_ok=True)
                path.with_name(f"{path.name}.1").unlink(missing_ok=True)

    async def _accompany(self, run: _Run) -> None:
        """Run the hook and the probes of a run, until it ends."""
        if await self._run_post_start(run) and await self._wait_for_startup(run):
            run.started = True
            run.ready = "readinessProbe" not in self._spec
            self._hooks.changed()
            await self._run_probes(run)

    async def _run_probes(self, run: _Run) -> None:
        async with asyncio.TaskGroup() as probes:
            for kind in ("readinessProbe", "livenessProbe"):
                if kind in self._spec:
                    probes.create_task(self._probe(run, kind))

    async def _run_post_start(self, run: _Run) -> bool:
        handler = (self._spec.get("lifecycle") or {}).get("postStart")
        if handler:
            answer = await self._run_hook(handler, float("inf"))
            if not answer.ok:
                message = f"PostStartHook failed: {answer.message}".strip()
                self._hooks.event(PodEvent("FailedPostStartHook", message, warning=True))
                self.stop(None, runs_hook=False)
                return False
        run.hook_done = True
        self._hooks.changed()
        return True

    async def _wait_for_startup(self, run: _Run) -> bool:
        if "startupProbe" in self._spec:
            await self._probe(run, "startupProbe")
            return run.grace is None
        return True

    async def _probe(self, run: _Run, kind: str) -> None:
        probe = self._spec[kind]
        options = ProbeOptions.of(probe)

        async def once() -> Answer:
            answer = await run_handler(probe, self, timeout=options.timeout)
            if not answer.ok and self._counts(run, kind):
                message = f"{kind.removesuffix('Probe').title()} probe failed: {answer.message}"
                self._hooks.event(PodEvent("Unhealthy", message, warning=True))
                self._hooks.changed()
            return answer

        await run_probe(options, once, lambda answer: self._decide(run, kind, answer))

    def _counts(self, run: _Run, kind: str) -> bool:
        """Report whether a probe counts: while a container is stopped, only readiness does."""
        return run.grace is None or kind == "readinessProbe"

    def _decide(self, run: _Run, kind: str, answer: Answer) -> bool:
        """Act on an answer that reached its threshold; report whether to go on asking."""
        if kind == "readinessProbe":
            if run.ready != answer.ok:
                run.ready = answer.ok
                self._hooks.changed()
            return True
        if not self._counts(run, kind):
            return False
        if answer.ok:
            return kind == "livenessProbe"
        what = kind.removesuffix("Probe")
        grace = self._spec[kind].get("terminationGracePeriodSeconds")
        self._hooks.event(PodEvent("Killing", f"Container {self.name} failed {what} probe, will be restarted"))
        self.stop(None if grace is None else float(grace), quiet=True)
        return False

    # While it runs

    def refresh(self, now: datetime) -> None:
        """Update the state from the process: started, ready, terminated."""
        run = self._run
        if run is None:
            return
        if run.running.exit is not None:
            self._finish(run, run.running.exit, now)
        else:
            self.state = replace(self.state, started=run.started, ready=run.ready)

    @property
    def waits_for_hook(self) -> bool:
        """Whether its postStart hook runs: until that ends, the container is reported as being created."""
        run = self._run
        return run is not None and not run.hook_done and "postStart" in (self._spec.get("lifecycle") or {})

    def _finish(self, run: _Run, exit_: Exit, now: datetime) -> None:
        for task in run.tasks:
            task.cancel()
        started = self.state.running or now
        if (now - started).total_seconds() > _BACKOFF_RESET:
            self.delay = 0.0
        reason = "OOMKilled" if exit_.out_of_memory else "StartError" if exit_.error else ""
        message = exit_.error or self._termination_message(exit_.code)
        if run.failure is not None:
            reason, message = run.failure
        terminated = Terminated(exit_.code, started, now, reason, message)
        self.state = replace(self.state.terminate(exit_.code, now, reason), terminated=terminated)
        self._run = None
        if exit_.error:
            self._hooks.event(PodEvent("Failed", f"Error: {exit_.error}", warning=True))

    def _termination_message(self, code: int) -> str:
        path = self._sandbox.message_path(self.name, self.state.restarts)
        with suppress(OSError), path.open("rb") as file:
            text = file.read(_MESSAGE_BYTES).decode(errors="replace")
            if text or code == 0 or self._spec.get("terminationMessagePolicy") != "FallbackToLogsOnError":
                return text
        return self._last_output()

    def _last_output(self) -> str:
        with suppress(OSError):
            lines = self._sandbox.log_path(self.name, self.state.restarts).read_bytes().splitlines()[-_FALLBACK_LINES:]
            text = b"".join(line.split(b" ", 3)[3] + b"\n" for line in lines if line.count(b" ") >= 3)
            return text[-_FALLBACK_BYTES:].decode(errors="replace")
        return ""

    def back_off(self, initial: float) -> float:
        """Return the delay before the next restart, and double it for the one after: 0, 10 s, 20 s, up to 5 min."""
        delay, self.delay = self.delay, min(max(self.delay * 2, initial), _MAX_BACKOFF)
        return delay

    # Commands inside of it

    def port(self, port: int | str) -> int:
        """Return the number of a port that may be named.

        Raises: OSError when the container has no port of that name.
        """
        if isinstance(port, int) or port.isdecimal():
            return int(port)
        for one in self._spec.get("ports") or ():
            if one.get("name") == port:
                return int(one["containerPort"])
        raise OSError(f"couldn't find port: {port}")

    def open(self, argv: Sequence[str], descriptors: Sequence[int], *, tty: bool = False) -> Running:
        """Start a command in the container with three streams.

        Raises: OSError when the container does not run.
        """
        run = self._run
        if run is None or run.running.pid == 0 or run.running.exit is not None or self._image is None:
            raise OSError(f"container {self.name} is not running")
        argv = self._sandbox.substitute(self._spec, self._image.resolve(list(argv)), self.state.restarts)
        return self._sandbox.execute(run.command, argv, pid=run.running.pid, descriptors=descriptors, tty=tty)

    async def execute(self, command: list[str]) -> tuple[int, str]:
        """Run a command in the container; return the exit code and the output. It is killed when this is cancelled."""
        reader, writer = os.pipe2(os.O_CLOEXEC)
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            running = self.open(command, [nothing, writer, writer])
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(writer)
            os.close(nothing)
        try:
            exit_ = await asyncio.shield(running.exited)
            return exit_.code, exit_.error or _read_available(reader)
        except asyncio.CancelledError:
            self._sandbox.supervisor.signal(running.id, signal.SIGKILL)
            raise
        finally:
            os.close(reader)

    async def _run_hook(self, handler: Mapping[str, Any], timeout: float) -> Answer:
        return await run_handler(handler, self, timeout=timeout)

    def send_signal(self, number: int, *, all_processes: bool = False) -> None:
        """Send a signal to the first process, or to all of them; nothing happens if none runs."""
        if self._run is not None:
            self._sandbox.supervisor.signal(self._run.running.id, number, all_processes=all_processes)

    # Stop

    def stop(self, grace: float | None, *, runs_hook: bool = True, quiet: bool = False) -> None:
        """Stop the container: preStop hook, SIGTERM, and SIGKILL after `grace` seconds.

        None is the grace period of the pod. A second call can only shorten it. `quiet` adds no event.
        """
        run = self._run
        grace = self._grace if grace is None else grace
        if run is None or (run.grace is not None and run.grace <= grace):
            return
        first, run.grace = run.grace is None, grace
        if first and not quiet:
            self._hooks.event(PodEvent("Killing", f"Stopping container {self.name}"))
        if not first:
            runs_hook = False
        run.tasks = (*run.tasks, self._hooks.spawn(self._stop(run, grace, runs_hook=runs_hook)))
        self._hooks.changed()

    def fail(self, reason: str, message: str) -> None:
        """Kill the container, and report why; nothing happens if none runs."""
        if self._run is not None:
            self._run.failure = reason, message
            self._hooks.event(PodEvent(reason, f"Container {self.name} {message}", warning=True))
            self.stop(0.0, runs_hook=False, quiet=True)

    def set_grace(self, seconds: float) -> None:
        """Set the grace period that the pod specifies."""
        self._grace = seconds

    async def _stop(self, run: _Run, grace: float, *, runs_hook: bool) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace
        handler = (self._spec.get("lifecycle") or {}).get("preStop")
        if handler and runs_hook and grace > 0:
            answer = await self._run_hook(handler, grace)
            if not answer.ok:
                message = f"PreStopHook failed: {answer.message}".strip()
                self._hooks.event(PodEvent("FailedPreStopHook", message, warning=True))
            deadline = max(deadline, loop.time() + _MINIMUM_GRACE)
        if grace > 0:
            self._sandbox.supervisor.signal(run.running.id, self._stop_signal)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await asyncio.shield(run.running.exited)
        if run.running.exit is None:
            self._sandbox.supervisor.signal(run.running.id, signal.SIGKILL)
            await asyncio.shield(run.running.exited)

    @property
    def _stop_signal(self) -> int:
        return signal.Signals[self._image.stop_signal if self._image is not None else "SIGTERM"]


def _read_available(reader: int) -> str:
    os.set_blocking(reader, False)
    content = b""
    with suppress(BlockingIOError):
        while len(content) < _OUTPUT_BYTES and (part := os.read(reader, _OUTPUT_BYTES)):
            content += part
    return content.decode(errors="replace")
