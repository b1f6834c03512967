"""The phase and the conditions of a pod, from its containers: plain functions, as a kubelet has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from konverge_cluster.nodes.container_states import ContainerState

__all__ = ["Phase", "ContainerStates", "conditions_of", "is_sidecar", "merge_conditions", "phase_of"]

Phase: TypeAlias = Literal["Pending", "Running", "Succeeded", "Failed"]
ContainerStates: TypeAlias = Mapping[str, ContainerState]
"""The runs of all containers of a pod, init containers included, by name."""

_OVER: Final = ("Succeeded", "Failed")


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """Tell whether an init container is one that goes on running."""
    return container.get("restartPolicy") == "Always"


def phase_of(spec: Mapping[str, Any], runs: ContainerStates) -> Phase:
    """Give the phase that the containers make."""
    policy = spec.get("restartPolicy", "Always")
    init = [runs[one["name"]] for one in spec.get("initContainers", ()) if not is_sidecar(one)]
    if policy == "Never" and any(_code(run) for run in init):
        return "Failed"
    if not all(run.ended is not None and run.ended.code == 0 for run in init):
        return "Pending"
    main = [runs[one["name"]] for one in spec["containers"]]
    sidecars = [runs[one["name"]] for one in spec.get("initContainers", ()) if is_sidecar(one)]
    if any(run.is_waiting and run.last is None for run in (*main, *sidecars)):
        return "Pending"
    if any(run.running is not None for run in main):
        return "Running"
    return _stopped(policy, main)


def _stopped(policy: str, main: list[ContainerState]) -> Phase:
    if policy == "Always":
        return "Running"
    codes = [_code(run) for run in main]
    if not any(codes) and all(run.ended is not None for run in main):
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def _code(run: ContainerState) -> int:
    ended = run.ended or run.last
    return ended.code if ended is not None else 0


def conditions_of(
    spec: Mapping[str, Any], runs: ContainerStates, phase: str, *, sandbox: bool, present: Iterable[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """Give the conditions that a kubelet keeps, each with what it says; `present` are those that the pod has now."""
    containers_ready = _containers_ready(spec, runs, phase)
    ready = {**containers_ready, "type": "Ready"}
    if containers_ready["status"] == "True":
        ready = _gates(spec, {one["type"]: one.get("status", "") for one in present})
    return [
        {"type": "PodReadyToStartContainers", "status": _word(sandbox)},
        _initialized(spec, runs, phase),
        ready,
        containers_ready,
        {"type": "PodScheduled", "status": "True"},
    ]


def _containers_ready(spec: Mapping[str, Any], runs: ContainerStates, phase: str) -> dict[str, str]:
    found = {"type": "ContainersReady", "status": "False"}
    if phase in _OVER:
        return {**found, "reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    lasting = [one for one in spec.get("initContainers", ()) if is_sidecar(one)]
    unready = [one["name"] for one in (*lasting, *spec["containers"]) if not runs[one["name"]].ready]
    if not unready:
        return {**found, "status": "True"}
    return {
        **found,
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(unready)}]",
    }


def _initialized(spec: Mapping[str, Any], runs: ContainerStates, phase: str) -> dict[str, str]:
    found = {"type": "Initialized", "status": "True"}
    if phase == "Succeeded":
        return {**found, "reason": "PodCompleted"}
    if any(_has_begun(runs[one["name"]]) for one in spec["containers"]):
        return found
    init = spec.get("initContainers", ())
    open_ = [one["name"] for one in init if not _is_initialized(runs[one["name"]], sidecar=is_sidecar(one))]
    if not open_:
        return found
    message = f"containers with incomplete status: [{' '.join(open_)}]"
    return {"type": "Initialized", "status": "False", "reason": "ContainersNotInitialized", "message": message}


def _has_begun(run: ContainerState) -> bool:
    return run.running is not None or run.ended is not None or run.last is not None


def _is_initialized(run: ContainerState, *, sidecar: bool) -> bool:
    return run.started if sidecar else run.ended is not None and run.ended.code == 0


def _gates(spec: Mapping[str, Any], present: Mapping[str, str]) -> dict[str, str]:
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
    present: Iterable[Mapping[str, Any]], wanted: Iterable[Mapping[str, str]], *, now: str, generation: int
) -> list[dict[str, Any]]:
    """Put conditions among those that a pod has: what keeps its status keeps its time, what others set stays."""
    kept = {one["type"]: dict(one) for one in present}
    for one in wanted:
        old = kept.get(one["type"], {})
        since = old.get("lastTransitionTime") if old.get("status") == one["status"] else now
        new = {**one, "lastTransitionTime": since or now}
        kept[one["type"]] = {**new, "observedGeneration": generation} if generation else new
    return list(kept.values())


def _word(value: bool) -> str:
    return "True" if value else "False"
