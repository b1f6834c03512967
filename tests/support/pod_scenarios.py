"""Scenarios for a cluster with nodes: workloads whose containers have a programmed behavior, and their pods.

A scenario records the same on the embedded cluster and on a real control plane with simulated nodes.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from konverge import Client
from konverge.objects import Unstructured
from konverge_cluster.nodes import Behavior, SimulatedNodes
from namespace_scenarios import until
from workload_clusters import masked

__all__ = ["PROGRAM", "SCENARIOS", "ScenarioNamespace"]

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


class ScenarioNamespace:
    """A namespace of a cluster with simulated nodes, and what was recorded there."""

    def __init__(self, client: Client, nodes: SimulatedNodes, namespace: str) -> None:
        self.client = client.using(namespace=namespace)
        self.nodes = nodes
        self.namespace = namespace
        self.recordings: dict[str, Any] = {}

    async def create(self, wire: dict[str, Any]) -> None:
        wire["metadata"]["namespace"] = self.namespace
        await self.client.create(Unstructured(wire))

    async def pods(self) -> list[Unstructured]:
        return list(await self.client.list("pods", namespace=self.namespace))

    async def until_pods(
        self, point: str, claim: Callable[[list[Unstructured]], bool], *, recorded: bool = True
    ) -> None:
        """Wait until a condition on all pods holds, and record them."""

        async def holds() -> list[Unstructured] | None:
            pods = await self.pods()
            return [*pods, Unstructured({})] if claim(pods) else None

        found = await until(holds, point, LIMIT)
        if recorded:
            self.recordings[point] = sorted((summary(pod) for pod in found[:-1]), key=str)


Scenario = Callable[[ScenarioNamespace], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


def summary(pod: Unstructured) -> dict[str, Any]:
    """Return the status of a pod, without what differs from run to run."""
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


# Conditions


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


# Scenarios


@scenario
async def ready_after_some_seconds(namespace: ScenarioNamespace) -> None:
    await namespace.create(deployment("late:1", 2))
    await namespace.until_pods("runs", lambda pods: len(pods) == 2 and running_unready(pods))
    await namespace.until_pods("ready", lambda pods: len(pods) == 2 and ready(pods))


@scenario
async def never_ready(namespace: ScenarioNamespace) -> None:
    await namespace.create(deployment("never:1"))
    await namespace.until_pods("runs", running_unready)


@scenario
async def crashes_two_times(namespace: ScenarioNamespace) -> None:
    await namespace.create(deployment("crash:1"))
    await namespace.until_pods("backs off", waiting_for("CrashLoopBackOff"))
    await namespace.until_pods("recovers", lambda pods: ready(pods) and _statuses(pods[0])[0]["restartCount"] == 2)


@scenario
async def a_job_ends_with_a_code(namespace: ScenarioNamespace) -> None:
    await namespace.create(job("code:1", restart="Never", backoffLimit=0))
    await namespace.until_pods("ended", in_phase("Failed"))


@scenario
async def a_job_is_restarted_in_place(namespace: ScenarioNamespace) -> None:
    await namespace.create(job("flaky:1", restart="OnFailure"))
    await namespace.until_pods("ended", in_phase("Succeeded"))


@scenario
async def an_image_cannot_be_pulled(namespace: ScenarioNamespace) -> None:
    await namespace.create(deployment("unpulled:1"))
    await namespace.until_pods("backs off", waiting_for("ImagePullBackOff"))


@scenario
async def pods_take_long_to_stop(namespace: ScenarioNamespace) -> None:
    await namespace.create(deployment("slow:1", 2))
    await namespace.until_pods("ready", lambda pods: len(pods) == 2 and ready(pods), recorded=False)
    await namespace.client.patch("deployments.apps", "web", {"spec": {"replicas": 0}})
    await namespace.until_pods("stopping", _are_stopping)
    await namespace.until_pods("gone", lambda pods: not pods)


def _are_stopping(pods: list[Unstructured]) -> bool:
    told = [pod for pod in pods if "deletionTimestamp" in pod.metadata]
    return len(told) == 2 and all(pod["status"]["observedGeneration"] == pod.metadata["generation"] for pod in told)


@scenario
async def a_node_goes_away_and_comes_back(namespace: ScenarioNamespace) -> None:
    tolerations = [
        {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
        for why in ("unreachable", "not-ready")
    ]
    await namespace.create(deployment("plain:1", node="node-2", tolerations=tolerations))
    await namespace.until_pods("ready", ready)
    namespace.nodes.stop_node("node-2")
    await namespace.until_pods("lost", _is_replaced)
    namespace.nodes.start_node("node-2")
    await namespace.until_pods("back", lambda pods: len(pods) == 1 and ready(pods))


def _is_replaced(pods: list[Unstructured]) -> bool:
    """Report whether the pod of the lost node is being deleted, and its replacement is unschedulable."""
    lost = [pod for pod in pods if "deletionTimestamp" in pod.metadata]
    new = [pod for pod in pods if "deletionTimestamp" not in pod.metadata]
    return len(lost) == len(new) == 1 and bool(new[0]["status"].get("conditions"))
