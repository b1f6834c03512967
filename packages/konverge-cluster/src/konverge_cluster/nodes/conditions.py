"""The phase and the conditions of a pod, derived from its containers as a kubelet does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from konverge_cluster.nodes.container_states import ContainerState

__all__ = ["ContainerStates", "Phase", "conditions_of", "is_sidecar", "merge_conditions", "phase_of"]

Phase: TypeAlias = Literal["Pending", "Running", "Succeeded", "Failed"]
ContainerStates: TypeAlias = Mapping[str, ContainerState]
"""The states of all containers of a pod by name, init containers included."""

_TERMINAL_PHASES: Final = ("Succeeded", "Failed")


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """Report whether an init container keeps running (its restart policy is Always)."""
    return container.get("restartPolicy") == "Always"


def phase_of(spec: Mapping[str, Any], states: ContainerStates) -> Phase:
    """Return the phase that follows from the containers."""
    policy = spec.get("restartPolicy", "Always")
    init = [states[one["name"]] for one in spec.get("initContainers", ()) if not is_sidecar(one)]
    if policy == "Never" and any(_exit_code(state) for state in init):
        return "Failed"
    if not all(state.terminated is not None and state.terminated.exit_code == 0 for state in init):
        return "Pending"
    main = [states[one["name"]] for one in spec["containers"]]
    sidecars = [states[one["name"]] for one in spec.get("initContainers", ()) if is_sidecar(one)]
    if any(state.is_waiting and state.last_terminated is None for state in (*main, *sidecars)):
        return "Pending"
    if any(state.running is not None for state in main):
        return "Running"
    return _phase_without_running(policy, main)


def _phase_without_running(policy: str, main: list[ContainerState]) -> Phase:
    if policy == "Always":
        return "Running"
    codes = [_exit_code(state) for state in main]
    if not any(codes) and all(state.terminated is not None for state in main):
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def _exit_code(state: ContainerState) -> int:
    terminated = state.terminated or state.last_terminated
    return terminated.exit_code if terminated is not None else 0


def conditions_of(
    spec: Mapping[str, Any],
    states: ContainerStates,
    phase: str,
    *,
    ready_to_start: bool,
    present: Iterable[Mapping[str, Any]],
) -> list[dict[str, str]]:
    """Return the conditions that a kubelet owns; `present` are the conditions that the pod has."""
    containers_ready = _containers_ready(spec, states, phase)
    ready = {**containers_ready, "type": "Ready"}
    if containers_ready["status"] == "True":
        ready = _ready_with_gates(spec, {one["type"]: one.get("status", "") for one in present})
    return [
        {"type": "PodReadyToStartContainers", "status": _condition_status(ready_to_start)},
        _initialized(spec, states, phase),
        ready,
        containers_ready,
        {"type": "PodScheduled", "status": "True"},
    ]


def _containers_ready(spec: Mapping[str, Any], states: ContainerStates, phase: str) -> dict[str, str]:
    condition = {"type": "ContainersReady", "status": "False"}
    if phase in _TERMINAL_PHASES:
        return {**condition, "reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    sidecars = [one for one in spec.get("initContainers", ()) if is_sidecar(one)]
    unready = [one["name"] for one in (*sidecars, *spec["containers"]) if not states[one["name"]].ready]
    if not unready:
        return {**condition, "status": "True"}
    return {
        **condition,
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(unready)}]",
    }


def _initialized(spec: Mapping[str, Any], states: ContainerStates, phase: str) -> dict[str, str]:
    condition = {"type": "Initialized", "status": "True"}
    if phase == "Succeeded":
        return {**condition, "reason": "PodCompleted"}
    if any(_has_started(states[one["name"]]) for one in spec["containers"]):
        return condition
    init = spec.get("initContainers", ())
    incomplete = [one["name"] for one in init if not _is_initialized(states[one["name"]], sidecar=is_sidecar(one))]
    if not incomplete:
        return condition
    message = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return {"type": "Initialized", "status": "False", "reason": "ContainersNotInitialized", "message": message}


def _has_started(state: ContainerState) -> bool:
    return state.running is not None or state.terminated is not None or state.last_terminated is not None


def _is_initialized(state: ContainerState, *, sidecar: bool) -> bool:
    return state.started if sidecar else state.terminated is not None and state.terminated.exit_code == 0


def _ready_with_gates(spec: Mapping[str, Any], present: Mapping[str, str]) -> dict[str, str]:
    unmet = []
    for gate in spec.get("readinessGates", ()):
        type_ = gate["conditionType"]
        if type_ not in present:
            unmet.append(f'corresponding condition of pod readiness gate "{type_}" does not exist.')
        elif present[type_] != "True":
            unmet.append(f'the status of pod readiness gate "{type_}" is not "True", but {present[type_]}')
    if not unmet:
        return {"type": "Ready", "status": "True"}
    reason = "ReadinessGatesNotReady"
    return {"type": "Ready", "status": "False", "reason": reason, "message": ", ".join(unmet)}


def merge_conditions(
    present: Iterable[Mapping[str, Any]], desired: Iterable[Mapping[str, str]], *, now: str, generation: int
) -> list[dict[str, Any]]:
    """Merge conditions into those of a pod: an unchanged status keeps its transition time, other conditions stay."""
    merged = {one["type"]: dict(one) for one in present}
    for one in desired:
        old = merged.get(one["type"], {})
        since = old.get("lastTransitionTime") if old.get("status") == one["status"] else now
        new = {**one, "lastTransitionTime": since or now}
        merged[one["type"]] = {**new, "observedGeneration": generation} if generation else new
    return list(merged.values())


def _condition_status(value: bool) -> str:
    return "True" if value else "False"
