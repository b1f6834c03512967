"""Table row of a pod."""

from __future__ import annotations

from typing import Any, Final

from konverge_cluster.api.strategy import Document
from konverge_cluster.api.tables import age_of
from konverge_cluster.builtins.rows.formats import NONE, age

__all__ = ["pod_cells"]

_TERMINAL_PHASES: Final = ("Failed", "Succeeded")


def pod_cells(pod: Document, now: float) -> list[Any]:
    summary = _Summary(pod)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        restarts = f"{summary.restarts} ({age_of(summary.last_restart, now)} ago)"
    ready = f"{summary.ready}/{summary.total}"
    cells = [pod["metadata"]["name"], ready, summary.reason, restarts, age(pod, now)]
    status = pod["status"]
    address = (status.get("podIPs") or [{}])[0].get("ip")
    node, nominated = pod["spec"].get("nodeName"), status.get("nominatedNodeName")
    return [*cells, address or NONE, node or NONE, nominated or NONE, _gates(pod)]


def _gates(pod: Document) -> str:
    gates = pod["spec"].get("readinessGates", ())
    if not gates:
        return NONE
    conditions = {each["type"]: each["status"] for each in reversed(pod["status"].get("conditions", ()))}
    return f"{sum(conditions.get(gate['conditionType']) == 'True' for gate in gates)}/{len(gates)}"


class _Summary:
    """Container counts and the status column of a pod; `reason` is the phase unless a container has a better one."""

    def __init__(self, pod: Document) -> None:
        self._pod = pod
        self._status = pod["status"]
        self._sidecars = {
            each["name"] for each in pod["spec"].get("initContainers", ()) if each.get("restartPolicy") == "Always"
        }
        self.total = len(pod["spec"]["containers"] or ()) + len(self._sidecars)
        self.ready = 0
        self.restarts = 0
        self.last_restart = ""
        self.reason = self._phase()
        if not self._initializing() or self._has_condition("Initialized"):
            self._count_containers()
        self._apply_deletion()

    def _phase(self) -> str:
        reason = str(self._status.get("reason") or self._status.get("phase", ""))
        for condition in self._status.get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
                return "SchedulingGated"
        return reason

    def _has_condition(self, kind: str) -> bool:
        conditions = self._status.get("conditions", ())
        return any(each["type"] == kind and each["status"] == "True" for each in conditions)

    def _count_restarts(self, status: Document) -> None:
        self.restarts += status.get("restartCount", 0)
        terminated = status.get("lastState", {}).get("terminated", {}).get("finishedAt") or ""
        self.last_restart = max(self.last_restart, terminated)

    def _initializing(self) -> bool:
        """Inspect the init containers up to the first unfinished one; report whether there is one."""
        statuses = self._status.get("initContainerStatuses", ())
        for index, status in enumerate(statuses):
            self._count_restarts(status)
            terminated, waiting = status["state"].get("terminated"), status["state"].get("waiting", {})
            if terminated is not None and terminated["exitCode"] == 0:
                continue
            if status["name"] in self._sidecars and status.get("started"):
                self.ready += bool(status.get("ready"))
                continue
            if terminated is not None:
                self.reason = f"Init:{_termination_reason(terminated)}"
            elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
                self.reason = f"Init:{waiting['reason']}"
            else:
                self.reason = f"Init:{index}/{len(self._pod['spec'].get('initContainers', ()))}"
            return True
        return False

    def _count_containers(self) -> None:
        self.restarts, self.last_restart = 0, ""
        for status in self._status.get("initContainerStatuses", ()):
            if status["name"] in self._sidecars:
                self._count_restarts(status)
        running, failure = False, ""
        for status in reversed(self._status.get("containerStatuses", ())):
            self._count_restarts(status)
            state = status["state"]
            terminated, waiting = state.get("terminated"), state.get("waiting", {}).get("reason")
            if waiting:
                self.reason = waiting
            elif terminated is not None:
                self.reason = _termination_reason(terminated)
                failure = self.reason if terminated["exitCode"] else failure
            elif status["ready"] and "running" in state:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            self.reason = self._completed(failure, running=running)

    def _completed(self, failure: str, *, running: bool) -> str:
        if running and self._has_condition("Ready"):
            return "Running"
        return failure or ("NotReady" if running else "Completed")

    def _apply_deletion(self) -> None:
        if "deletionTimestamp" not in self._pod["metadata"]:
            return
        if self._status.get("reason") == "NodeLost":
            self.reason = "Unknown"
        elif self._status.get("phase") not in _TERMINAL_PHASES:
            self.reason = "Terminating"


def _termination_reason(terminated: Document) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated['exitCode']}"
