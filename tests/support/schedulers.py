"""A scheduler beside a server with nodes: ours on virtual time, or the real kube-scheduler."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from konverge import Client
from konverge.objects import Unstructured, wall_clock
from konverge.testing import ControlPlane, settle
from konverge.testing.binaries import NEEDED, find_binaries
from konverge_cluster.clock import utc_now
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.nodes import SimulatedNodes
from konverge_cluster.nodes.node_objects import node_object
from node_controllers import node_controllers
from ownerships import client_of, virtual_clock
from scheduler_cases import NODES

__all__ = ["Decision", "embedded_decisions", "real_decisions", "real_scheduler", "register_nodes"]

Decision = tuple[str, dict[str, Any], list[str]]
"""The node of a pod, its PodScheduled condition, and the messages of the scheduler's events."""


@contextmanager
def real_scheduler(plane: ControlPlane) -> Iterator[None]:
    """Run kube-scheduler for a control plane."""
    program = find_binaries((*NEEDED, "kube-scheduler")) / "kube-scheduler"
    flags = [f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false", "--secure-port=0"]
    with (plane.directory / "kube-scheduler.log").open("wb") as log:
        running = subprocess.Popen([program, *flags], stdout=log, stderr=log)
        try:
            yield
        finally:
            running.terminate()
            running.wait(30)


async def embedded_decisions(pods: list[dict[str, Any]]) -> dict[str, Decision]:
    """Create the pods one after the other on an embedded server with our scheduler; return what it decided."""
    server = EmbeddedServer(clock=virtual_clock, seed=1)
    client = client_of(server)
    nodes = SimulatedNodes(client_of(server), nodes=NODES, heartbeat=0, clock=virtual_clock)
    async with node_controllers(client_of(server), virtual_clock), nodes.running():
        await settle()

        async def settled(_: str) -> None:
            await settle()

        return await _decisions(client, pods, "default", settled)


async def real_decisions(client: Client, pods: list[dict[str, Any]], namespace: str) -> dict[str, Decision]:
    """Create the pods one after the other in a namespace of a real server with kube-scheduler."""
    await client.create(Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))

    async def decided(name: str) -> None:
        for _ in range(600):
            found = await client.get("pods", name, namespace=namespace)
            gated = bool(found["spec"].get("schedulingGates"))
            reported = gated or bool(await _messages(client, name, namespace))
            if reported and (_condition(found) or found["spec"].get("nodeName")):
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"kube-scheduler decided nothing about pod {name}")

    try:
        return await _decisions(client, pods, namespace, decided)
    finally:
        for one in await client.list("pods", namespace=namespace):
            await client.delete("pods", one.name, namespace=namespace, grace_period=0)


async def register_nodes(client: Client) -> None:
    """Create the nodes on a real server without kubelets: ready, with no other taints than their own."""
    for one in NODES:
        await client.create(Unstructured(node_object(one, utc_now(wall_clock))))
        taints = [dict(taint) for taint in one.taints]
        await client.patch("nodes", one.name, {"spec": {"taints": taints or None}})


async def _decisions(
    client: Client, pods: list[dict[str, Any]], namespace: str, decided: Callable[[str], Awaitable[None]]
) -> dict[str, Decision]:
    found: dict[str, Decision] = {}
    for one in pods:
        name = one["metadata"]["name"]
        await client.create(Unstructured({**one, "metadata": {**one["metadata"], "namespace": namespace}}))
        await decided(name)
        pod = await client.get("pods", name, namespace=namespace)
        messages = await _messages(client, name, namespace)
        condition = _condition(pod)
        condition.pop("lastTransitionTime", None)
        condition.pop("lastProbeTime", None)
        if "nodeName" in pod["spec"]:
            condition.pop("observedGeneration", None)  # of a kubelet, which the real server here has not
        found[name] = (pod["spec"].get("nodeName", ""), condition, [one.replace(namespace, "NS") for one in messages])
    return found


async def _messages(client: Client, name: str, namespace: str) -> list[str]:
    events = await client.list("events", namespace=namespace)
    own = [one for one in events if one["involvedObject"]["name"] == name and _is_scheduler(one)]
    return sorted({f"{one['type']} {one['reason']}: {one['message']}" for one in own})


def _is_scheduler(event: Unstructured) -> bool:
    return "default-scheduler" in (event.get("reportingComponent"), (event.get("source") or {}).get("component"))


def _condition(pod: Unstructured) -> dict[str, Any]:
    conditions = (pod.get("status") or {}).get("conditions", ())
    return next((dict(one) for one in conditions if one["type"] == "PodScheduled"), {})
