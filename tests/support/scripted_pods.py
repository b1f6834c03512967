"""Plays for a cluster with nodes: workloads whose containers are told how to behave, and what their pods look like.

The same play on the embedded cluster and on a real control plane with our stand-in for nodes leaves the same notes.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from konverge import Client
from konverge.objects import Unstructured
from konverge_cluster.nodes import Behavior, SimulatedNodes
from namespace_scenarios import until
from workload_scene import masked

__all__ = ["PLAYS", "PROGRAM", "Stage"]

LIMIT = 240
PROGRAM = (
    Behavior(image="late:*", ready_after=8),
    Behavior(image="never:*", never_ready=True),
    Behavior(image="crash:*", crashes=2),
    Behavior(image="flaky:*", crashes=1, exit_code=5),
    Behavior(image="code:*", exit_code=3),
    Behavior(image="unpulled:*", pull_fails=True),
    Behavior(image="slow:*", stops_after=10),
)


class Stage:
    """A namespace of a cluster whose nodes are played, and what was noted there."""

    def __init__(self, client: Client, nodes: SimulatedNodes, namespace: str) -> None:
        self.client = client.using(namespace=namespace)
        self.nodes = nodes
        self.namespace = namespace
        self.pages: dict[str, Any] = {}

    async def create(self, wire: dict[str, Any]) -> None:
        wire["metadata"]["namespace"] = self.namespace
        await self.client.create(Unstructured(wire))

    async def pods(self) -> list[Unstructured]:
        return list(await self.client.list("pods", namespace=self.namespace))

    async def until_pods(self, point: str, claim: Callable[[list[Unstructured]], bool], *, noted: bool = True) -> None:
        """Wait until a claim about all pods holds, and note how they look then."""

        async def holds() -> list[Unstructured] | None:
            pods = await self.pods()
            return [*pods, Unstructured({})] if claim(pods) else None

        found = await until(holds, point, LIMIT)
        if noted:
            self.pages[point] = sorted((shown(pod) for pod in found[:-1]), key=str)


Play = Callable[[Stage], Awaitable[None]]
PLAYS: dict[str, Play] = {}


def play(function: Play) -> Play:
    PLAYS[function.__name__] = function
    return function


def shown(pod: Unstructured) -> dict[str, Any]:
    """Give what a pod says of itself, without what differs from run to run."""
    wire = {key: value for key, value in pod["status"].items() if key not in ("podIP", "podIPs")}
    status = json.loads(json.dumps(wire).replace(pod.name, "<name>"))
    owner = pod.metadata["ownerReferences"][0]["kind"]
    page = {"owner": owner, "deleting": "deletionTimestamp" in pod.metadata, "status": masked(status)}
    page["status"]["conditions"].sort(key=lambda one: one["type"])
    return page


def template(image: str, *, node: str = "node-1", **spec: Any) -> dict[str, Any]:
    selector = {"kubernetes.io/hostname": node}
    inside = {"containers": [{"name": "c", "image": image}], "nodeSelector": selector, **spec}
    return {"metadata": {"labels": {"app": "web"}}, "spec": inside}


def deployment(image: str, replicas: int = 1, **more: Any) -> dict[str, Any]:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template(image, **more)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def job(image: str, *, restart: str, **spec: Any) -> dict[str, Any]:
    inside = template(image, restartPolicy=restart)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": {"template": inside, **spec}}


# Claims


def _statuses(pod: Unstructured) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (pod.get("status") or {}).get("containerStatuses") or []
    return found


def ready(pods: list[Unstructured]) -> bool:
    return bool(pods) and all(one["ready"] for pod in pods for one in _statuses(pod) or [{"ready": False}])


def running_unready(pods: list[Unstructured]) -> bool:
    return bool(pods) and all("running" in one["state"] for pod in pods for one in _statuses(pod) or [{"state": {}}])


def waiting_for(reason: str) -> Callable[[list[Unstructured]], bool]:
    def holds(pods: list[Unstructured]) -> bool:
        states = [one["state"].get("waiting", {}).get("reason") for pod in pods for one in _statuses(pod)]
        return bool(states) and set(states) == {reason}

    return holds


def in_phase(phase: str) -> Callable[[list[Unstructured]], bool]:
    return lambda pods: bool(pods) and all(pod["status"].get("phase") == phase for pod in pods)


# Plays


@play
async def ready_after_some_seconds(stage: Stage) -> None:
    await stage.create(deployment("late:1", 2))
    await stage.until_pods("runs", lambda pods: len(pods) == 2 and running_unready(pods))
    await stage.until_pods("ready", lambda pods: len(pods) == 2 and ready(pods))


@play
async def never_ready(stage: Stage) -> None:
    await stage.create(deployment("never:1"))
    await stage.until_pods("runs", running_unready)


@play
async def crashes_two_times(stage: Stage) -> None:
    await stage.create(deployment("crash:1"))
    await stage.until_pods("backs off", waiting_for("CrashLoopBackOff"))
    await stage.until_pods("recovers", lambda pods: ready(pods) and _statuses(pods[0])[0]["restartCount"] == 2)


@play
async def a_job_ends_with_a_code(stage: Stage) -> None:
    await stage.create(job("code:1", restart="Never", backoffLimit=0))
    await stage.until_pods("ended", in_phase("Failed"))


@play
async def a_job_is_restarted_in_place(stage: Stage) -> None:
    await stage.create(job("flaky:1", restart="OnFailure"))
    await stage.until_pods("ended", in_phase("Succeeded"))


@play
async def an_image_cannot_be_pulled(stage: Stage) -> None:
    await stage.create(deployment("unpulled:1"))
    await stage.until_pods("backs off", waiting_for("ImagePullBackOff"))


@play
async def pods_take_long_to_stop(stage: Stage) -> None:
    await stage.create(deployment("slow:1", 2))
    await stage.until_pods("ready", lambda pods: len(pods) == 2 and ready(pods), noted=False)
    await stage.client.patch("deployments.apps", "web", {"spec": {"replicas": 0}})
    await stage.until_pods("stopping", _are_stopping)
    await stage.until_pods("gone", lambda pods: not pods)


def _are_stopping(pods: list[Unstructured]) -> bool:
    told = [pod for pod in pods if "deletionTimestamp" in pod.metadata]
    return len(told) == 2 and all(pod["status"]["observedGeneration"] == pod.metadata["generation"] for pod in told)


@play
async def a_node_goes_away_and_comes_back(stage: Stage) -> None:
    patience = [
        {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
        for why in ("unreachable", "not-ready")
    ]
    await stage.create(deployment("plain:1", node="node-2", tolerations=patience))
    await stage.until_pods("ready", ready)
    stage.nodes.stop_node("node-2")
    await stage.until_pods("lost", _is_replaced)
    stage.nodes.start_node("node-2")
    await stage.until_pods("back", lambda pods: len(pods) == 1 and ready(pods))


def _is_replaced(pods: list[Unstructured]) -> bool:
    """Tell whether the pod of the lost node is told to go, and the one for it finds no place."""
    lost = [pod for pod in pods if "deletionTimestamp" in pod.metadata]
    new = [pod for pod in pods if "deletionTimestamp" not in pod.metadata]
    return len(lost) == len(new) == 1 and bool(new[0]["status"].get("conditions"))
