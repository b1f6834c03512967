"""The lifecycle of a pod on a node as a state machine: from a pod's status and the time to its next status.

This module decides; it does not write, sleep or log. All its memory is the status of the pod, in whole seconds, so
that a restarted simulated kubelet continues where the last one stopped. Rules that hold here:

1. Init containers start in order, each after the one before it exited with 0 (a sidecar: after it has started).
2. A terminated container restarts as its restart policy says: the first time at once, then 10 s, 20 s, 40 s
      and so on up to 5 min after it terminated; meanwhile it is in CrashLoopBackOff.
3. A deleted pod stops its containers as `termination` says, reports that, and is then removed.
4. A pod that succeeded or failed never runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from konverge_cluster.nodes.behaviors import Behavior
from konverge_cluster.nodes.conditions import conditions_of, is_sidecar, merge_conditions, phase_of
from konverge_cluster.nodes.container_states import (
    ContainerState,
    container_status,
    format_time,
    parse_container_status,
)
from konverge_cluster.nodes.termination import RunningContainer, container_stops

__all__ = ["PodAddresses", "PodEvent", "PodSync", "sync_pod"]

Container: TypeAlias = Mapping[str, Any]

_TERMINAL_PHASES: Final = ("Succeeded", "Failed")
_RUN_TO_COMPLETION_SECONDS: Final = 1.0
_CRASH_SECONDS: Final = 1.0
_PULL_SECONDS: Final = 2.0
_INITIAL_BACKOFF: Final = 10.0
_MAX_BACKOFF: Final = 300.0
_SIGKILL_EXIT_CODE: Final = 137


@dataclass(frozen=True)
class PodAddresses:
    """The IP addresses of a pod and of its node."""

    host_ip: str
    pod_ip: str


@dataclass(frozen=True)
class PodEvent:
    """An event about the pod."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True)
class PodSync:
    """The result of one sync: a status to write, events, and seconds until the next sync (0: at once, None: never).

    `terminated` means that the pod has terminated and is to be deleted.
    """

    status: dict[str, Any]
    after: float | None = None
    events: tuple[PodEvent, ...] = ()
    terminated: bool = False


def sync_pod(
    pod: Mapping[str, Any], now: datetime, addresses: PodAddresses, behavior: Callable[[Container], Behavior]
) -> PodSync:
    """Return the next status of a pod on a node; `behavior` returns the behavior of one of its containers."""
    return _PodLifecycle(pod, now, addresses, behavior).sync()


class _PodLifecycle:
    def __init__(
        self, pod: Mapping[str, Any], now: datetime, addresses: PodAddresses, behavior: Callable[[Container], Behavior]
    ) -> None:
        self._pod = pod
        self._metadata: Mapping[str, Any] = pod["metadata"]
        self._spec: Mapping[str, Any] = pod["spec"]
        self._old_status: Mapping[str, Any] = pod.get("status") or {}
        self._now = now.replace(microsecond=0)
        self._addresses = addresses
        self._behavior = behavior
        self._precise_now = now
        self._policy: str = self._spec.get("restartPolicy", "Always")
        self._init: list[Container] = list(self._spec.get("initContainers", ()))
        self._main: list[Container] = list(self._spec["containers"])
        self._states = self._parse_states()
        self._delays: list[float] = []
        self._events: list[PodEvent] = []

    def _parse_states(self) -> dict[str, ContainerState]:
        statuses = {
            one["name"]: one
            for part in ("initContainerStatuses", "containerStatuses")
            for one in self._old_status.get(part) or ()
        }
        every = (*self._init, *self._main)
        return {
            one["name"]: parse_container_status(one["name"], one["image"], statuses.get(one["name"])) for one in every
        }

    # Transitions

    def sync(self) -> PodSync:
        deleting = "deletionTimestamp" in self._metadata
        if self._old_status.get("phase") in _TERMINAL_PHASES:
            return PodSync(dict(self._old_status), terminated=deleting)
        if deleting:
            return self._stop()
        if "startTime" not in self._old_status:
            return self._admit()
        if self._is_overdue():
            return self._fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
        return self._run()

    def _admit(self) -> PodSync:
        waiting = "PodInitializing" if self._init else "ContainerCreating"
        self._states = {name: state.wait(waiting) for name, state in self._states.items()}
        status = self._status("Pending", ready_to_start=False)
        return PodSync({**status, "startTime": format_time(self._now)}, after=0.0)

    def _run(self) -> PodSync:
        before = dict(self._states)
        if self._initialize():
            for one in self._main:
                self._advance(one, restarts=self._restarts_main_container)
        phase = phase_of(self._spec, self._states)
        if self._is_finished():
            self._stop_sidecars()
        status = self._status(phase, ready_to_start=phase not in _TERMINAL_PHASES)
        changed = before != self._states
        after = 0.0 if changed and phase not in _TERMINAL_PHASES else min(self._delays, default=None)
        return PodSync(status, None if phase in _TERMINAL_PHASES else after, tuple(self._events))

    def _stop(self) -> PodSync:
        first = self._old_status.get("observedGeneration", 0) < self._metadata.get("generation", 1)
        grace = float(self._metadata.get("deletionGracePeriodSeconds", 0))
        deleted = datetime.fromisoformat(self._metadata["deletionTimestamp"]) - timedelta(seconds=grace)
        running = [one for one in (*self._init, *self._main) if self._states[one["name"]].running is not None]
        if first:
            self._events += [PodEvent("Killing", f"Stopping container {one['name']}") for one in running]
        stopping = [self._running_container(one) for one in running]
        stopped = max((one.terminated.finished for one in self._states.values() if one.terminated), default=deleted)
        for stop in container_stops(self._pod, stopping, deleted=deleted, stopped=stopped, grace=grace):
            if first and stop.hook_failed:
                self._events.append(PodEvent("FailedPreStopHook", "PreStopHook failed", warning=True))
            if self._is_due(stop.at):
                self._states[stop.name] = self._states[stop.name].terminate(stop.exit_code, self._now)
        if any(state.running is not None for state in self._states.values()):
            phase = self._old_status.get("phase", "Pending")
            return PodSync(self._status(phase, ready_to_start=True), min(self._delays), tuple(self._events))
        return self._finish()

    def _running_container(self, container: Container) -> RunningContainer:
        state, behavior = self._states[container["name"]], self._behavior(container)
        assert state.running is not None
        duration, exit_code = self._run_duration(container, state, behavior)
        exits_at = None if duration is None else state.running + timedelta(seconds=duration)
        return RunningContainer(container, is_sidecar(container), behavior.stops_after or 0.0, exits_at, exit_code)

    def _finish(self) -> PodSync:
        for name, state in self._states.items():
            if state.is_waiting:
                self._states[name] = state.terminate(_SIGKILL_EXIT_CODE, self._now, "ContainerStatusUnknown")
        codes = [
            state.terminated.exit_code
            for one in self._main
            if (state := self._states[one["name"]]).terminated is not None
        ]
        phase = "Failed" if any(codes) else "Succeeded"
        return PodSync(self._status(phase, ready_to_start=False), events=tuple(self._events), terminated=True)

    def _is_overdue(self) -> bool:
        limit = self._spec.get("activeDeadlineSeconds")
        if limit is None:
            return False
        return self._is_due(self._started() + timedelta(seconds=limit))

    def _fail(self, reason: str, message: str) -> PodSync:
        for name, state in self._states.items():
            if state.running is not None:
                self._states[name] = state.terminate(_SIGKILL_EXIT_CODE, self._now)
        status = self._status("Failed", ready_to_start=False)
        return PodSync({**status, "reason": reason, "message": message}, events=(PodEvent(reason, message),))

    # Containers

    def _initialize(self) -> bool:
        """Advance the init containers; report whether the main containers may start."""
        since = self._started()
        for one in self._init:
            sidecar = is_sidecar(one)
            self._advance(one, since=since, restarts=_always if sidecar else self._restarts_init_container)
            state = self._states[one["name"]]
            if sidecar:
                if not state.started and state.last_terminated is None:
                    return False
            elif state.terminated is None or state.terminated.exit_code != 0:
                return False
            else:
                since = max(since, state.terminated.finished)
        return True

    def _advance(self, container: Container, *, restarts: Callable[[int], bool], since: datetime | None = None) -> None:
        state = self._states[container["name"]]
        behavior = self._behavior(container)
        if state.running is not None:
            state = self._while_running(container, state, behavior)
        elif state.terminated is not None:
            if restarts(state.terminated.exit_code) and not self._is_finished():
                state = self._restart(container, state)
        elif state.last_terminated is not None:
            state = self._restart(container, state)
        else:
            state = self._start_first(container, state, behavior, since or self._earliest_start())
        self._states[container["name"]] = state

    def _start_first(
        self, container: Container, state: ContainerState, behavior: Behavior, since: datetime
    ) -> ContainerState:
        if behavior.pull_fails:
            return self._fail_pull(state, since)
        due = since + timedelta(seconds=behavior.start_after or 0.0)
        return self._start(container, state) if self._is_due(due) else state

    def _fail_pull(self, state: ContainerState, since: datetime) -> ContainerState:
        error = f'failed to pull and unpack image "{state.image}": not found'
        if state.waiting == "ImagePullBackOff":
            return state
        if state.waiting == "ErrImagePull":
            if not self._is_due(since + timedelta(seconds=_PULL_SECONDS)):
                return state
            message = f'Back-off pulling image "{state.image}"'
            self._events.append(PodEvent("BackOff", message))
            self._events.append(PodEvent("Failed", "Error: ImagePullBackOff", warning=True))
            return state.wait("ImagePullBackOff", f"{message}: ErrImagePull: {error}")
        self._events.append(PodEvent("Pulling", f'Pulling image "{state.image}"'))
        self._events.append(PodEvent("Failed", f'Failed to pull image "{state.image}": {error}', warning=True))
        self._events.append(PodEvent("Failed", "Error: ErrImagePull", warning=True))
        return state.wait("ErrImagePull", error)

    def _start(self, container: Container, state: ContainerState) -> ContainerState:
        self._events.append(PodEvent("Pulled", f'Container image "{state.image}" already present on machine'))
        self._events.append(PodEvent("Created", "Container created"))
        self._events.append(PodEvent("Started", "Container started"))
        started = state.start(self._now)
        return self._while_running(container, started, self._behavior(container), just_started=True)

    def _while_running(
        self, container: Container, state: ContainerState, behavior: Behavior, *, just_started: bool = False
    ) -> ContainerState:
        assert state.running is not None
        duration, exit_code = self._run_duration(container, state, behavior)
        if duration is not None and not just_started and self._is_due(state.running + timedelta(seconds=duration)):
            return state.terminate(exit_code, self._now)
        if duration is not None and just_started:
            self._is_due(state.running + timedelta(seconds=duration))
        return replace(state, started=True, ready=self._is_ready(container, state, behavior))

    def _is_ready(self, container: Container, state: ContainerState, behavior: Behavior) -> bool:
        assert state.running is not None
        if container in self._init and not is_sidecar(container):
            return False
        if behavior.never_ready:
            if not state.started:
                self._events.append(PodEvent("Unhealthy", "Readiness probe failed: simulated failure", warning=True))
            return False
        probe = container.get("readinessProbe") or {}
        first = behavior.ready_after
        wait = float(probe.get("initialDelaySeconds", 0)) if first is None else first
        return self._is_due(state.running + timedelta(seconds=wait))

    def _run_duration(
        self, container: Container, state: ContainerState, behavior: Behavior
    ) -> tuple[float | None, int]:
        """Return how long a run lasts (None: until it is stopped) and its exit code."""
        crashes = behavior.crashes
        if crashes is not None and (crashes < 0 or state.restarts < crashes):
            duration = _CRASH_SECONDS if behavior.runs_for is None else behavior.runs_for
            return duration, 1 if behavior.exit_code is None else behavior.exit_code
        if crashes is None and behavior.runs_for is not None:
            return behavior.runs_for, behavior.exit_code or 0
        exit_code = (behavior.exit_code or 0) if crashes is None else 0
        if container in self._init:
            return (None if is_sidecar(container) else 0.0), exit_code
        terminate = self._policy != "Always" or (crashes is None and behavior.exit_code is not None)
        return (_RUN_TO_COMPLETION_SECONDS if terminate else None), exit_code

    def _restart(self, container: Container, state: ContainerState) -> ContainerState:
        terminated = state.terminated or state.last_terminated
        assert terminated is not None
        wait = _backoff(state.restarts)
        if self._is_due(terminated.finished + timedelta(seconds=wait)):
            return self._start(container, state)
        if state.waiting == "CrashLoopBackOff":
            return state
        pod = f"{self._metadata['name']}_{self._metadata['namespace']}({self._metadata['uid']})"
        message = f"Back-off restarting failed container {state.name} in pod {pod}"
        self._events.append(PodEvent("BackOff", message, warning=True))
        delay_text = f"{wait:.0f}s" if wait < 60 else f"{wait // 60:.0f}m{wait % 60:.0f}s"
        return state.wait(
            "CrashLoopBackOff", f"back-off {delay_text} restarting failed container={state.name} pod={pod}"
        )

    def _restarts_main_container(self, exit_code: int) -> bool:
        return self._policy == "Always" or (self._policy == "OnFailure" and exit_code != 0)

    def _restarts_init_container(self, exit_code: int) -> bool:
        return exit_code != 0 and self._policy != "Never"

    def _is_finished(self) -> bool:
        """Report whether every container has terminated and none restarts."""
        terminated = [state.terminated for one in self._main if (state := self._states[one["name"]]) is not None]
        return all(one is not None and not self._restarts_main_container(one.exit_code) for one in terminated)

    def _stop_sidecars(self) -> None:
        for one in self._init:
            state = self._states[one["name"]]
            if is_sidecar(one) and state.running is not None:
                self._states[one["name"]] = state.terminate(0, self._now)

    # Time

    def _started(self) -> datetime:
        return datetime.fromisoformat(self._old_status["startTime"])

    def _earliest_start(self) -> datetime:
        """Return the earliest time at which the main containers may start."""
        terminated = [
            state.terminated.finished
            for one in self._init
            if (state := self._states[one["name"]]).terminated is not None
        ]
        return max([self._started(), *terminated])

    def _is_due(self, due: datetime) -> bool:
        """Report whether a time has come; if it has not, the next sync is due then."""
        left = (due - self._precise_now).total_seconds()
        if left > 0:
            self._delays.append(left)
        return left <= 0

    # Status

    def _status(self, phase: str, *, ready_to_start: bool) -> dict[str, Any]:
        now, uid = format_time(self._now), self._metadata["uid"]
        present = self._old_status.get("conditions") or ()
        desired = conditions_of(self._spec, self._states, phase, ready_to_start=ready_to_start, present=present)
        generation = self._metadata.get("generation", 0)
        status = {
            **self._old_status,
            "phase": phase,
            "conditions": merge_conditions(present, desired, now=now, generation=generation),
            "hostIP": self._addresses.host_ip,
            "hostIPs": [{"ip": self._addresses.host_ip}],
            "containerStatuses": [container_status(self._states[one["name"]], uid) for one in self._main],
        }
        if self._init:
            status["initContainerStatuses"] = [self._init_status(one, uid) for one in self._init]
        if ready_to_start or "podIP" in self._old_status:
            status |= {"podIP": self._addresses.pod_ip, "podIPs": [{"ip": self._addresses.pod_ip}]}
        return {**status, "observedGeneration": generation} if generation else status

    def _init_status(self, container: Container, uid: str) -> dict[str, Any]:
        state = self._states[container["name"]]
        if not is_sidecar(container) and state.terminated is not None and state.terminated.exit_code == 0:
            state = replace(state, ready=True)
        return container_status(state, uid)


def _always(_: int) -> bool:
    return True


def _backoff(restarts: int) -> float:
    """Return the delay before a container is restarted that has been restarted `restarts` times."""
    return 0.0 if restarts == 0 else min(_INITIAL_BACKOFF * 2.0 ** (restarts - 1), _MAX_BACKOFF)
