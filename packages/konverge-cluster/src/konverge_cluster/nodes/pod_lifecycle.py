"""The life of a pod on a node, as a state machine: its state and the time go in, its next state comes out.

This module decides; it does not write, sleep or log. What it remembers stands in the status of the pod, in whole
seconds, so that a stand-in that was started anew goes on where the last one stopped. Rules that hold here:

1. Init containers start one after the other, each when the one before it has ended well (a sidecar: has started).
2. A container that ended starts again as its restart policy says: the first time at once, then after 10 s, 20 s, 40 s
   and so on to 5 min since it ended; meanwhile it is in CrashLoopBackOff.
3. A pod that is told to go stops its containers within its grace period, says so, and is gone then.
4. A pod that succeeded or failed never runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from konverge_cluster.nodes.behaviors import Behavior
from konverge_cluster.nodes.conditions import conditions_of, is_sidecar, merge_conditions, phase_of
from konverge_cluster.nodes.container_states import ContainerState, parse_container_status, format_time, container_status

__all__ = ["PodAddresses", "PodSync", "PodEvent", "sync_pod"]

Container: TypeAlias = Mapping[str, Any]

_OVER: Final = ("Succeeded", "Failed")
_JOB_SECONDS: Final = 1.0
_CRASH_SECONDS: Final = 1.0
_PULL_SECONDS: Final = 2.0
_FIRST_BACKOFF: Final = 10.0
_MOST_BACKOFF: Final = 300.0
_STOPPED: Final = 143
_KILLED: Final = 137


@dataclass(frozen=True)
class PodAddresses:
    """Where a pod runs: the addresses of its node and its own."""

    host: str
    address: str


@dataclass(frozen=True)
class PodEvent:
    """An event about the pod."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True)
class PodSync:
    """What is next: a status to be written, events, and in how many seconds to look again (0: at once, None: never).

    `gone` says that the pod has ended and is to be removed.
    """

    status: dict[str, Any]
    after: float | None = None
    told: tuple[PodEvent, ...] = ()
    gone: bool = False


def sync_pod(pod: Mapping[str, Any], now: datetime, place: PodAddresses, behavior: Callable[[Container], Behavior]) -> PodSync:
    """Say what a pod on a node is next; `behavior` gives what is said about one of its containers."""
    return _PodLifecycle(pod, now, place, behavior).step()


class _PodLifecycle:
    def __init__(
        self, pod: Mapping[str, Any], now: datetime, place: PodAddresses, behavior: Callable[[Container], Behavior]
    ) -> None:
        self._metadata: Mapping[str, Any] = pod["metadata"]
        self._spec: Mapping[str, Any] = pod["spec"]
        self._before: Mapping[str, Any] = pod.get("status") or {}
        self._now = now.replace(microsecond=0)
        self._place = place
        self._behavior = behavior
        self._exact = now
        self._policy: str = self._spec.get("restartPolicy", "Always")
        self._init: list[Container] = list(self._spec.get("initContainers", ()))
        self._main: list[Container] = list(self._spec["containers"])
        self._runs = self._read_runs()
        self._dues: list[float] = []
        self._events: list[PodEvent] = []

    def _read_runs(self) -> dict[str, ContainerState]:
        statuses = {
            one["name"]: one
            for part in ("initContainerStatuses", "containerStatuses")
            for one in self._before.get(part) or ()
        }
        every = (*self._init, *self._main)
        return {one["name"]: parse_container_status(one["name"], one["image"], statuses.get(one["name"])) for one in every}

    # Which way

    def step(self) -> PodSync:
        deleting = "deletionTimestamp" in self._metadata
        if self._before.get("phase") in _OVER:
            return PodSync(dict(self._before), gone=deleting)
        if deleting:
            return self._stop()
        if "startTime" not in self._before:
            return self._admit()
        if self._is_overdue():
            return self._fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
        return self._go_on()

    def _admit(self) -> PodSync:
        waiting = "PodInitializing" if self._init else "ContainerCreating"
        self._runs = {name: run.waits(waiting) for name, run in self._runs.items()}
        status = self._status("Pending", sandbox=False)
        return PodSync({**status, "startTime": format_time(self._now)}, after=0.0)

    def _go_on(self) -> PodSync:
        before = dict(self._runs)
        if self._initialize():
            for one in self._main:
                self._advance(one, restarts=self._restarts_main)
        phase = phase_of(self._spec, self._runs)
        if self._is_finished():
            self._end_sidecars()
        status = self._status(phase, sandbox=phase not in _OVER)
        moved = before != self._runs
        after = 0.0 if moved and phase not in _OVER else min(self._dues, default=None)
        return PodSync(status, None if phase in _OVER else after, tuple(self._events))

    def _stop(self) -> PodSync:
        first = self._before.get("observedGeneration", 0) < self._metadata.get("generation", 1)
        grace = float(self._metadata.get("deletionGracePeriodSeconds", 0))
        told = datetime.fromisoformat(self._metadata["deletionTimestamp"]) - timedelta(seconds=grace)
        for one in (*self._init, *self._main):
            run = self._runs[one["name"]]
            if run.running is not None:
                if first:
                    self._events.append(PodEvent("Killing", f"Stopping container {run.name}"))
                self._end_by(one, run, told, grace)
        if any(run.running is not None for run in self._runs.values()):
            phase = self._before.get("phase", "Pending")
            return PodSync(self._status(phase, sandbox=True), min(self._dues), tuple(self._events))
        return self._ended()

    def _end_by(self, container: Container, run: ContainerState, told: datetime, grace: float) -> None:
        wanted = self._behavior(container).stops_after or 0.0
        due = told + timedelta(seconds=min(wanted, grace))
        if self._is_due(due):
            self._runs[run.name] = run.ends(_KILLED if wanted > grace else _STOPPED, self._now)

    def _ended(self) -> PodSync:
        for name, run in self._runs.items():
            if run.is_waiting:
                self._runs[name] = run.ends(_KILLED, self._now, "ContainerStatusUnknown")
        codes = [run.ended.code for one in self._main if (run := self._runs[one["name"]]).ended is not None]
        phase = "Failed" if any(codes) else "Succeeded"
        return PodSync(self._status(phase, sandbox=False), told=tuple(self._events), gone=True)

    def _is_overdue(self) -> bool:
        limit = self._spec.get("activeDeadlineSeconds")
        if limit is None:
            return False
        return self._is_due(self._started() + timedelta(seconds=limit))

    def _fail(self, reason: str, message: str) -> PodSync:
        for name, run in self._runs.items():
            if run.running is not None:
                self._runs[name] = run.ends(_KILLED, self._now)
        status = self._status("Failed", sandbox=False)
        return PodSync({**status, "reason": reason, "message": message}, told=(PodEvent(reason, message),))

    # Containers

    def _initialize(self) -> bool:
        """Bring the init containers forward; say whether the others may start."""
        since = self._started()
        for one in self._init:
            sidecar = is_sidecar(one)
            self._advance(one, since=since, restarts=_always if sidecar else self._restarts_init)
            run = self._runs[one["name"]]
            if sidecar:
                if not run.started and run.last is None:
                    return False
            elif run.ended is None or run.ended.code != 0:
                return False
            else:
                since = max(since, run.ended.finished)
        return True

    def _advance(self, container: Container, *, restarts: Callable[[int], bool], since: datetime | None = None) -> None:
        run = self._runs[container["name"]]
        behavior = self._behavior(container)
        if run.running is not None:
            run = self._while_running(container, run, behavior)
        elif run.ended is not None:
            if restarts(run.ended.code) and not self._is_finished():
                run = self._again(container, run)
        elif run.last is not None:
            run = self._again(container, run)
        else:
            run = self._first(container, run, behavior, since or self._since())
        self._runs[container["name"]] = run

    def _first(self, container: Container, run: ContainerState, behavior: Behavior, since: datetime) -> ContainerState:
        if behavior.pull_fails:
            return self._unpulled(run, since)
        due = since + timedelta(seconds=behavior.start_after or 0.0)
        return self._start(container, run) if self._is_due(due) else run

    def _unpulled(self, run: ContainerState, since: datetime) -> ContainerState:
        why = f'failed to pull and unpack image "{run.image}": not found'
        if run.waiting == "ImagePullBackOff":
            return run
        if run.waiting == "ErrImagePull":
            if not self._is_due(since + timedelta(seconds=_PULL_SECONDS)):
                return run
            words = f'Back-off pulling image "{run.image}"'
            self._events.append(PodEvent("BackOff", words))
            self._events.append(PodEvent("Failed", "Error: ImagePullBackOff", warning=True))
            return run.waits("ImagePullBackOff", f"{words}: ErrImagePull: {why}")
        self._events.append(PodEvent("Pulling", f'Pulling image "{run.image}"'))
        self._events.append(PodEvent("Failed", f'Failed to pull image "{run.image}": {why}', warning=True))
        self._events.append(PodEvent("Failed", "Error: ErrImagePull", warning=True))
        return run.waits("ErrImagePull", why)

    def _start(self, container: Container, run: ContainerState) -> ContainerState:
        self._events.append(PodEvent("Pulled", f'Container image "{run.image}" already present on machine'))
        self._events.append(PodEvent("Created", "Container created"))
        self._events.append(PodEvent("Started", "Container started"))
        started = run.starts(self._now)
        return self._while_running(container, started, self._behavior(container), just_started=True)

    def _while_running(
        self, container: Container, run: ContainerState, behavior: Behavior, *, just_started: bool = False
    ) -> ContainerState:
        assert run.running is not None
        length, code = self._length(container, run, behavior)
        if length is not None and not just_started and self._is_due(run.running + timedelta(seconds=length)):
            return run.ends(code, self._now)
        if length is not None and just_started:
            self._is_due(run.running + timedelta(seconds=length))
        return replace(run, started=True, ready=self._is_ready(container, run, behavior))

    def _is_ready(self, container: Container, run: ContainerState, behavior: Behavior) -> bool:
        assert run.running is not None
        if container in self._init and not is_sidecar(container):
            return False
        if behavior.never_ready:
            if not run.started:
                self._events.append(PodEvent("Unhealthy", "Readiness probe failed: told to", warning=True))
            return False
        probe = container.get("readinessProbe") or {}
        first = behavior.ready_after
        wait = float(probe.get("initialDelaySeconds", 0)) if first is None else first
        return self._is_due(run.running + timedelta(seconds=wait))

    def _length(self, container: Container, run: ContainerState, behavior: Behavior) -> tuple[float | None, int]:
        """Give how long a run lasts, None for ever, and how it ends."""
        crashes = behavior.crashes
        if crashes is not None and (crashes < 0 or run.restarts < crashes):
            length = _CRASH_SECONDS if behavior.runs_for is None else behavior.runs_for
            return length, 1 if behavior.exit_code is None else behavior.exit_code
        if crashes is None and behavior.runs_for is not None:
            return behavior.runs_for, behavior.exit_code or 0
        code = (behavior.exit_code or 0) if crashes is None else 0
        if container in self._init:
            return (None if is_sidecar(container) else 0.0), code
        ends = self._policy != "Always" or (crashes is None and behavior.exit_code is not None)
        return (_JOB_SECONDS if ends else None), code

    def _again(self, container: Container, run: ContainerState) -> ContainerState:
        ended = run.ended or run.last
        assert ended is not None
        wait = _backoff(run.restarts)
        if self._is_due(ended.finished + timedelta(seconds=wait)):
            return self._start(container, run)
        if run.waiting == "CrashLoopBackOff":
            return run
        pod = f"{self._metadata['name']}_{self._metadata['namespace']}({self._metadata['uid']})"
        words = f"Back-off restarting failed container {run.name} in pod {pod}"
        self._events.append(PodEvent("BackOff", words, warning=True))
        lasts = f"{wait:.0f}s" if wait < 60 else f"{wait // 60:.0f}m{wait % 60:.0f}s"
        return run.waits("CrashLoopBackOff", f"back-off {lasts} restarting failed container={run.name} pod={pod}")

    def _restarts_main(self, code: int) -> bool:
        return self._policy == "Always" or (self._policy == "OnFailure" and code != 0)

    def _restarts_init(self, code: int) -> bool:
        return code != 0 and self._policy != "Never"

    def _is_finished(self) -> bool:
        """Whether every container has ended and none of them starts again."""
        ended = [run.ended for one in self._main if (run := self._runs[one["name"]]) is not None]
        return all(one is not None and not self._restarts_main(one.code) for one in ended)

    def _end_sidecars(self) -> None:
        for one in self._init:
            run = self._runs[one["name"]]
            if is_sidecar(one) and run.running is not None:
                self._runs[one["name"]] = run.ends(0, self._now)

    # Time

    def _started(self) -> datetime:
        return datetime.fromisoformat(self._before["startTime"])

    def _since(self) -> datetime:
        """Give when the containers of the pod could start at the earliest."""
        ended = [run.ended.finished for one in self._init if (run := self._runs[one["name"]]).ended is not None]
        return max([self._started(), *ended])

    def _is_due(self, moment: datetime) -> bool:
        """Tell whether a moment has come; one that has not is when to look again."""
        left = (moment - self._exact).total_seconds()
        if left > 0:
            self._dues.append(left)
        return left <= 0

    # Telling

    def _status(self, phase: str, *, sandbox: bool) -> dict[str, Any]:
        now, uid = format_time(self._now), self._metadata["uid"]
        present = self._before.get("conditions") or ()
        wanted = conditions_of(self._spec, self._runs, phase, sandbox=sandbox, present=present)
        generation = self._metadata.get("generation", 0)
        status = {
            **self._before,
            "phase": phase,
            "conditions": merge_conditions(present, wanted, now=now, generation=generation),
            "hostIP": self._place.host,
            "hostIPs": [{"ip": self._place.host}],
            "containerStatuses": [container_status(self._runs[one["name"]], uid) for one in self._main],
        }
        if self._init:
            status["initContainerStatuses"] = [self._init_status(one, uid) for one in self._init]
        if sandbox or "podIP" in self._before:
            status |= {"podIP": self._place.address, "podIPs": [{"ip": self._place.address}]}
        return {**status, "observedGeneration": generation} if generation else status

    def _init_status(self, container: Container, uid: str) -> dict[str, Any]:
        run = self._runs[container["name"]]
        if not is_sidecar(container) and run.ended is not None and run.ended.code == 0:
            run = replace(run, ready=True)
        return container_status(run, uid)


def _always(_: int) -> bool:
    return True


def _backoff(restarts: int) -> float:
    """Give how long a container waits that was started again so many times."""
    return 0.0 if restarts == 0 else min(_FIRST_BACKOFF * 2.0 ** (restarts - 1), _MOST_BACKOFF)
