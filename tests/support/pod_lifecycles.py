"""A pod without a server: `sync_pod` advances it on a clock of its own."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

from konverge_cluster.nodes import Behavior, PodAddresses, PodSync, Program, sync_pod
from konverge_cluster.nodes.behaviors import PodInfo

START = datetime(2027, 1, 15, tzinfo=UTC)


class PodScenario:
    """A pod and its history of states; `at(seconds)` advances it to that time."""

    def __init__(self, *behaviors: Behavior, **spec: Any) -> None:
        self.program = Program(behaviors)
        spec = {"containers": [{"name": "c", "image": "app:1"}], "restartPolicy": "Always", **spec}
        metadata = {"name": "p", "namespace": "default", "uid": "u", "generation": 1}
        self.pod: dict[str, Any] = {"metadata": metadata, "spec": spec, "status": {}}
        self.now = START
        self.states: list[dict[str, Any]] = []
        self.events: list[str] = []
        self.terminated = False
        self.steps = 0

    def step(self) -> PodSync:
        info = PodInfo("p", "default", {}, self.pod["metadata"].get("annotations", {}))
        result = sync_pod(
            self.pod,
            self.now,
            PodAddresses("172.30.0.2", "10.64.0.2"),
            lambda container: self.program.behavior_of(container["image"], container["name"], info),
        )
        if result.status != self.pod["status"]:
            self.pod["status"] = copy.deepcopy(result.status)
            self.states.append(result.status)
        self.events += [f"{one.reason}: {one.message}" for one in result.events]
        self.terminated = result.terminated
        self.steps += 1
        return result

    def at(self, seconds: float) -> PodScenario:
        """Advance until `seconds` after the start."""
        end = START + timedelta(seconds=seconds)
        while not self.terminated:
            after = self.step().after
            if after is None or self.now + timedelta(seconds=after) > end:
                break
            self.now += timedelta(seconds=after)
        self.now = max(self.now, end)
        if not self.terminated:
            self.step()
        return self

    def delete(self, grace: int = 30) -> None:
        metadata = self.pod["metadata"]
        metadata["deletionTimestamp"] = (self.now + timedelta(seconds=grace)).strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata |= {"deletionGracePeriodSeconds": grace, "generation": metadata["generation"] + 1}

    # State

    @property
    def phase(self) -> str:
        return str(self.pod["status"].get("phase", ""))

    @property
    def conditions(self) -> dict[str, str]:
        return {one["type"]: one["status"] for one in self.pod["status"]["conditions"]}

    def reason(self, type_: str) -> tuple[str, str]:
        found = next(one for one in self.pod["status"]["conditions"] if one["type"] == type_)
        return found.get("reason", ""), found.get("message", "")

    def container(self, name: str = "c") -> dict[str, Any]:
        status = self.pod["status"]
        every = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
        found: dict[str, Any] = next(one for one in every if one["name"] == name)
        return found

    def state(self, name: str = "c") -> str:
        ((word, facts),) = self.container(name)["state"].items()
        return f"{word} {facts['reason']}" if "reason" in facts else word
