"""A running cluster: an embedded server with its controllers and simulated nodes, on virtual time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from konverge import Client, Manager
from konverge.objects import Unstructured
from konverge.testing import settle
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.garbage import GarbageCollector
from konverge_cluster.namespaces import namespace_controllers
from konverge_cluster.nodes import SimulatedNodes
from konverge_cluster.workloads import workload_controllers
from node_controllers import node_controllers
from ownerships import client_of, virtual_clock


@dataclass
class RunningCluster:
    server: EmbeddedServer
    client: Client
    nodes: SimulatedNodes

    async def pods(self, labels: str = "") -> list[Unstructured]:
        return sorted(await self.client.list("pods", namespace="default", labels=labels), key=lambda pod: pod.name)

    async def pod(self, name: str) -> Unstructured:
        return await self.client.get("pods", name)

    async def events(self, name: str = "") -> list[str]:
        found = [one for one in await self.client.list("events") if name in ("", one["involvedObject"]["name"])]
        return [f"{one['reason']}: {one['message']}" for one in found]


@asynccontextmanager
async def running_cluster(
    *, nodes: int = 2, workloads: bool = False, garbage: bool = False, **options: Any
) -> AsyncGenerator[RunningCluster]:
    """Run a cluster with as many of its parts as a test needs."""
    server = EmbeddedServer(clock=virtual_clock, seed=1)
    options = {"heartbeat": 0.0, **options}
    simulated = SimulatedNodes(client_of(server), nodes=nodes, clock=virtual_clock, **options)
    async with AsyncExitStack() as stack:
        require_lease = not options["heartbeat"]
        await stack.enter_async_context(node_controllers(client_of(server), virtual_clock, require_lease=require_lease))
        if workloads:
            manager = Manager(client_of(server), name="kube-controller-manager")
            manager.add(*workload_controllers(clock=virtual_clock), *namespace_controllers(clock=virtual_clock))
            await stack.enter_async_context(manager.running())
        if garbage:
            await stack.enter_async_context(GarbageCollector(client_of(server)).running())
        await stack.enter_async_context(simulated.running())
        await settle()
        yield RunningCluster(server, client_of(server), simulated)


def pod(name: str, **spec: Any) -> Unstructured:
    """Return a pod of one container by default."""
    metadata = {"name": name, "namespace": "default"}
    for part in ("labels", "annotations", "finalizers"):
        if part in spec:
            metadata[part] = spec.pop(part)
    image = spec.pop("image", "app:1")
    spec = {"containers": [{"name": "c", "image": image}], **spec}
    return Unstructured({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def deployment(name: str, replicas: int = 2, image: str = "app:1") -> Unstructured:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": "default"}
    return Unstructured({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})


def conditions(obj: Unstructured) -> dict[str, str]:
    return {one["type"]: one["status"] for one in obj.get("status", {}).get("conditions", ())}


def state(obj: Unstructured, container: str = "c") -> dict[str, Any]:
    status = obj["status"]
    every = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    found: dict[str, Any] = next(one for one in every if one["name"] == container)
    return found
