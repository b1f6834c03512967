"""The lifecycle of a pod whose containers are processes.

`sync` is called for every change: of the pod, of what it reads, and of its processes. It starts what is due, and
returns the status to write. The rules of `nodes.pod_lifecycle` hold here too; what differs is that containers end by
themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from konverge.objects import Unstructured
from konverge.reconcile import Context
from konverge_cluster.nodes.conditions import conditions_of, is_sidecar, merge_conditions, phase_of
from konverge_cluster.nodes.container_states import (
    ContainerState,
    container_status,
    format_time,
    parse_container_status,
)
from konverge_cluster.nodes.pod_lifecycle import PodAddresses, PodEvent, PodSync
from konverge_cluster.processes.containers import ContainerHooks, ProcessContainer, Spawn
from konverge_cluster.processes.environment import resolve_environment
from konverge_cluster.processes.expansion import expand
from konverge_cluster.processes.images import LocalImage, missing_image
from konverge_cluster.processes.sandbox import Sandbox, SandboxOptions
from konverge_cluster.processes.sources import MissingSource, PodFacts, Sources, Token
from konverge_cluster.processes.users import RefusedUser

__all__ = ["PodTasks", "ProcessPod"]

_TERMINAL_PHASES: Final = ("Succeeded", "Failed")
_PULL_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 2.0
_UNKNOWN_EXIT_CODE: Final = 137
_TOKEN_SECONDS: Final = 60.0
_MEASURE_SECONDS: Final = 2.0


@dataclass(frozen=True)
class PodTasks:
    """What a pod needs of the runtime: tasks, and a sync after a change."""

    spawn: Spawn
    changed: Callable[[], None]


class ProcessPod:
    """One pod on a process node."""

    def __init__(self, options: SandboxOptions, pod: Unstructured, addresses: PodAddresses, tasks: PodTasks) -> None:
        self.key = pod.key
        self.uid = pod.uid
        self.sandbox = Sandbox(options, pod)
        self.addresses = addresses
        self._options = options
        self._pod = pod
        self.spec = pod["spec"]
        self._policy: str = self.spec.get("restartPolicy", "Always")
        self._init: list[Any] = list(self.spec.get("initContainers") or ())
        self._main: list[Any] = list(self.spec["containers"])
        self._events: list[PodEvent] = []
        self._delays: list[float] = []
        self._tokens: dict[tuple[str, int], Token] = {}
        self._failure: tuple[str, str] | None = None
        self._now = datetime.now(UTC)
        hooks = ContainerHooks(tasks.spawn, tasks.changed, self._events.append, addresses.pod_ip)
        self.containers = {one["name"]: self._container(one, hooks) for one in (*self._init, *self._main)}

    def _container(self, spec: Any, hooks: ContainerHooks) -> ProcessContainer:
        status = self._pod.get("status") or {}
        every = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
        found = next((one for one in every if one["name"] == spec["name"]), None)
        state = parse_container_status(spec["name"], spec["image"], found)
        if state.running is not None:  # it ended with the runtime that had started it
            state = state.terminate(_UNKNOWN_EXIT_CODE, state.running, "ContainerStatusUnknown")
        container = ProcessContainer(spec, self.sandbox, hooks, state)
        container.set_grace(float(self.spec.get("terminationGracePeriodSeconds", 30)))
        return container

    # Transitions

    async def sync(self, pod: Unstructured, ctx: Context, allocatable: dict[str, str]) -> PodSync:
        """Do what is due, and return the status and the events to write."""
        self._pod = pod
        self._delays.clear()
        self._now = datetime.now(UTC)
        for container in self.containers.values():
            container.refresh(self._now)
        sync = await self._sync(ctx, allocatable)
        events, self._events[:] = tuple(self._events), []
        return replace(sync, events=events)

    async def _sync(self, ctx: Context, allocatable: dict[str, str]) -> PodSync:
        status = self._old_status
        deleting = "deletionTimestamp" in self._pod.metadata
        if status.get("phase") in _TERMINAL_PHASES:
            await (self.sandbox.remove() if deleting else self.sandbox.close())
            return PodSync(dict(status), terminated=deleting)
        if deleting:
            return await self._stop()
        if "startTime" not in status:
            return self._admit()
        if self._failure is None and self._is_overdue():
            self._failure = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
        if self._failure is None and self.sandbox.has_size_limits:
            self._failure = await self._find_full_volume()
        if self._failure is not None:
            return await self._fail(*self._failure)
        return await self._run(ctx, allocatable)

    async def _find_full_volume(self) -> tuple[str, str] | None:
        self._delays.append(_MEASURE_SECONDS)
        name, limit = await asyncio.to_thread(self.sandbox.find_full_volume)
        return ("Evicted", f'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". ') if name else None

    @property
    def _old_status(self) -> dict[str, Any]:
        return dict(self._pod.get("status") or {})

    def _admit(self) -> PodSync:
        for container in self.containers.values():
            container.state = container.state.wait(self._creating)
        status = self._status("Pending", ready_to_start=False)
        return PodSync({**status, "startTime": format_time(self._now)}, after=0.0)

    @property
    def _creating(self) -> str:
        return "PodInitializing" if self._init else "ContainerCreating"

    async def _run(self, ctx: Context, allocatable: dict[str, str]) -> PodSync:
        before = self._states()
        facts = PodFacts(self._pod, self.addresses.pod_ip, self.addresses.host_ip, allocatable)
        sources = Sources(ctx, self._tokens)
        if await self._prepare(facts, sources) and await self._initialize(facts, sources):
            for one in self._main:
                await self._advance(one, facts, sources)
        if self._is_finished():
            self._stop_sidecars()
        phase = self._phase()
        if phase in _TERMINAL_PHASES:
            await self.sandbox.close()
        status = self._status(phase, ready_to_start=phase not in _TERMINAL_PHASES and self.sandbox.is_open)
        changed = before != self._states() and phase not in _TERMINAL_PHASES
        return PodSync(status, 0.0 if changed else self._next_sync(phase))

    def _next_sync(self, phase: str) -> float | None:
        if phase in _TERMINAL_PHASES:
            return None
        if self._tokens:
            self._delays.append(_TOKEN_SECONDS)
        return min(self._delays, default=None)

    def _phase(self) -> str:
        phase = phase_of(self.spec, self._states())
        still_running = any(one.is_running for one in self.containers.values())
        return "Running" if phase in _TERMINAL_PHASES and still_running else phase

    async def _prepare(self, facts: PodFacts, sources: Sources) -> bool:
        """Open the sandbox and create or update the volumes; report whether containers may start."""
        try:
            if not self.sandbox.is_open:
                await self.sandbox.open()
            await self.sandbox.sync_volumes(facts, sources)
        except (MissingSource, OSError) as error:
            reason = "FailedMount" if isinstance(error, MissingSource) else "FailedCreatePodSandBox"
            self._events.append(PodEvent(reason, str(error), warning=True))
            self._delays.append(_RETRY_SECONDS)
            return any(one.is_running for one in self.containers.values())
        return True

    # Containers

    async def _initialize(self, facts: PodFacts, sources: Sources) -> bool:
        """Advance the init containers; report whether the main containers may start."""
        for one in self._init:
            await self._advance(one, facts, sources)
            state = self.containers[one["name"]].state
            if is_sidecar(one):
                if not state.started and state.last_terminated is None:
                    return False
            elif state.terminated is None or state.terminated.exit_code != 0:
                return False
        return True

    async def _advance(self, spec: Any, facts: PodFacts, sources: Sources) -> None:
        container = self.containers[spec["name"]]
        state = container.state
        if container.is_running:
            return
        ended = state.terminated or state.last_terminated
        if ended is None:
            await self._start(spec, container, facts, sources)
        elif state.terminated is None or self._restarts(spec, ended.exit_code):
            await self._restart(spec, container, facts, sources)

    async def _restart(self, spec: Any, container: ProcessContainer, facts: PodFacts, sources: Sources) -> None:
        state = container.state
        if state.terminated is not None:
            wait = container.back_off(self._options.crash_backoff)
            container.restart_at = state.terminated.finished + timedelta(seconds=wait)
            if wait > 0:
                self._report_backoff(container, wait)
        if self._is_due(container.restart_at):
            await self._start(spec, container, facts, sources)

    def _report_backoff(self, container: ProcessContainer, wait: float) -> None:
        pod = f"{self._pod.name}_{self._pod.namespace}({self._pod.uid})"
        message = f"Back-off restarting failed container {container.name} in pod {pod}"
        self._events.append(PodEvent("BackOff", message, warning=True))
        text = f"{wait:.0f}s" if wait < 60 else f"{wait // 60:.0f}m{wait % 60:.0f}s"
        message = f"back-off {text} restarting failed container={container.name} pod={pod}"
        container.state = container.state.wait("CrashLoopBackOff", message)

    async def _start(self, spec: Any, container: ProcessContainer, facts: PodFacts, sources: Sources) -> None:
        image = self._options.images.find(spec["image"])
        if image is None:
            self._fail_pull(container)
            return
        try:
            env = await self._environment(spec, image, facts, sources)
            image = _expanded(image, {**_known(facts), **env})
            argv = image.argv(*([expand(one, env) for one in spec.get(part) or ()] for part in ("command", "args")))
            command = self.sandbox.command(spec, image, argv, env, run=container.next_run)
        except (MissingSource, RefusedUser, OSError) as error:
            self._fail_creation(container, str(error))
            return
        if not argv:
            self._fail_creation(container, f'no command specified: add one to the local image of "{image.image}"')
            return
        self._events.append(PodEvent("Pulled", f'Container image "{container.state.image}" already present on machine'))
        self._events.append(PodEvent("Created", "Container created"))
        await container.start(command, image, self._now)
        container.refresh(self._now)

    async def _environment(self, spec: Any, image: LocalImage, facts: PodFacts, sources: Sources) -> dict[str, str]:
        known = _known(facts)
        own = {name: expand(value, known) for name, value in image.env.items()}
        links = await sources.service_variables() if facts.pod["spec"].get("enableServiceLinks", True) else {}
        base = {**links, **self.sandbox.base_environment(spec), **own}
        return await resolve_environment(spec, facts, sources, base)

    def _fail_creation(self, container: ProcessContainer, message: str) -> None:
        if container.state.message != message:
            self._events.append(PodEvent("Failed", f"Error: {message}", warning=True))
        container.state = container.state.wait("CreateContainerConfigError", message)
        self._delays.append(_RETRY_SECONDS)

    def _fail_pull(self, container: ProcessContainer) -> None:
        state, image = container.state, container.state.image
        error = missing_image(image)
        if state.waiting == "ImagePullBackOff":
            return
        if state.waiting == "ErrImagePull":
            if self._is_due(container.pull_failed_at + timedelta(seconds=_PULL_SECONDS)):
                message = f'Back-off pulling image "{image}"'
                self._events.append(PodEvent("BackOff", message))
                self._events.append(PodEvent("Failed", "Error: ImagePullBackOff", warning=True))
                container.state = state.wait("ImagePullBackOff", f"{message}: ErrImagePull: {error}")
            return
        container.pull_failed_at = self._now
        self._is_due(self._now + timedelta(seconds=_PULL_SECONDS))
        self._events.append(PodEvent("Pulling", f'Pulling image "{image}"'))
        self._events.append(PodEvent("Failed", f'Failed to pull image "{image}": {error}', warning=True))
        self._events.append(PodEvent("Failed", "Error: ErrImagePull", warning=True))
        container.state = state.wait("ErrImagePull", error)

    def _restarts(self, spec: Any, exit_code: int) -> bool:
        if is_sidecar(spec):
            return not self._is_finished()
        if spec in self._init:
            return exit_code != 0 and self._policy != "Never"
        return self._policy == "Always" or (self._policy == "OnFailure" and exit_code != 0)

    def _is_finished(self) -> bool:
        """Report whether every container has terminated and none restarts."""
        ended = [(one, self.containers[one["name"]].state.terminated) for one in self._main]
        return all(state is not None and not self._restarts(one, state.exit_code) for one, state in ended)

    # The end

    def _stop_sidecars(self) -> bool:
        """Stop sidecars in reverse order, each after the next one; report whether all have ended."""
        for one in reversed(self._init):
            container = self.containers[one["name"]]
            if container.is_running:
                container.stop(self._grace())
                return False
        return True

    def _stop_containers(self) -> bool:
        """Stop the main containers, then the sidecars; report whether all have ended."""
        running = [one for one in self._main if self.containers[one["name"]].is_running]
        for one in running:
            self.containers[one["name"]].stop(self._grace())
        return not running and self._stop_sidecars()

    def _grace(self) -> float | None:
        if "deletionTimestamp" not in self._pod.metadata:
            return None
        return float(self._pod.metadata.get("deletionGracePeriodSeconds", 0))

    async def _stop(self) -> PodSync:
        if not self._stop_containers():
            phase = self._old_status.get("phase", "Pending")
            return PodSync(self._status(phase, ready_to_start=True), None)
        for container in self.containers.values():
            if container.state.is_waiting:
                container.state = container.state.terminate(_UNKNOWN_EXIT_CODE, self._now, "ContainerStatusUnknown")
        states = [self.containers[one["name"]].state.terminated for one in self._main]
        phase = "Failed" if any(one is not None and one.exit_code for one in states) else "Succeeded"
        await self.sandbox.remove()
        return PodSync(self._status(phase, ready_to_start=False), terminated=True)

    async def _fail(self, reason: str, message: str) -> PodSync:
        if not self._stop_containers():
            return PodSync(self._status(self._old_status.get("phase", "Pending"), ready_to_start=True), None)
        await self.sandbox.close()
        self._events.append(PodEvent(reason, message))
        status = self._status("Failed", ready_to_start=False)
        return PodSync({**status, "reason": reason, "message": message})

    def _is_overdue(self) -> bool:
        limit = self.spec.get("activeDeadlineSeconds")
        started = datetime.fromisoformat(self._old_status["startTime"])
        return limit is not None and self._is_due(started + timedelta(seconds=limit))

    # Time and status

    def _is_due(self, due: datetime) -> bool:
        """Report whether a time has come; if it has not, the next sync is due then."""
        left = (due - self._now).total_seconds()
        if left > 0:
            self._delays.append(left)
        return left <= 0

    def _states(self) -> dict[str, ContainerState]:
        return {name: self._reported(container) for name, container in self.containers.items()}

    def _reported(self, container: ProcessContainer) -> ContainerState:
        if container.waits_for_hook:
            return replace(container.state, running=None, waiting=self._creating)
        if self._failure is not None:
            return replace(container.state, ready=False)
        return container.state

    def _status(self, phase: str, *, ready_to_start: bool) -> dict[str, Any]:
        old, states, uid = self._old_status, self._states(), self.uid
        present = old.get("conditions") or ()
        desired = conditions_of(self.spec, states, phase, ready_to_start=ready_to_start, present=present)
        generation = self._pod.metadata.get("generation", 0)
        status = {
            **old,
            "phase": phase,
            "conditions": merge_conditions(present, desired, now=format_time(self._now), generation=generation),
            "hostIP": self.addresses.host_ip,
            "hostIPs": [{"ip": self.addresses.host_ip}],
            "containerStatuses": [container_status(states[one["name"]], uid) for one in self._main],
        }
        if self._init:
            status["initContainerStatuses"] = [self._init_status(one, states[one["name"]]) for one in self._init]
        if ready_to_start or self.sandbox.was_open or "podIP" in old:
            status |= {"podIP": self.addresses.pod_ip, "podIPs": [{"ip": self.addresses.pod_ip}]}
        return {**status, "observedGeneration": generation} if generation else status

    def _init_status(self, spec: Any, state: ContainerState) -> dict[str, Any]:
        if not is_sidecar(spec):
            completed = state.terminated is not None and state.terminated.exit_code == 0
            state = replace(state, ready=completed)
        return container_status(state, self.uid)

    async def discard(self) -> None:
        """Kill everything and remove the files: the pod no longer exists."""
        await self.sandbox.remove()


def _known(facts: PodFacts) -> dict[str, str]:
    """Return the variables that a local image may use beside those of its container."""
    return {"POD_IP": facts.pod_ip, "POD_NAME": facts.pod.name, "POD_NAMESPACE": facts.pod.namespace}


def _expanded(image: LocalImage, variables: Mapping[str, str]) -> LocalImage:
    command, args = ([expand(one, variables) for one in part] for part in (image.command, image.args))
    return replace(image, command=command, args=args)
