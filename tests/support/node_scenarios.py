"""Scenarios of nodes and their pods, for the embedded control plane and a real one: the scenario is every kubelet.

Nodes have no namespace: their names and their zone begin with the namespace of the scenario, which is masked. Each
scenario has a second node that stays alive, so that its zone is not fully disrupted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from konverge.client import Client, InProcessTransport
from konverge.objects import MicroTime, Unstructured
from konverge.testing import VirtualTimeLoop
from konverge_cluster.embedded_server import EmbeddedServer
from node_controllers import node_controllers
from quiet_namespaces import QuietNamespaces
from workload_clusters import START, WorkloadCluster, event_messages, masked, seen
from workload_scenarios import Notes

__all__ = [
    "ALONE",
    "SCENARIOS",
    "THRESHOLD",
    "WATCHED",
    "NodeCluster",
    "NodeNotes",
    "embedded_node_cluster",
    "with_living_nodes",
]

WATCHED = ("pods", "nodes", "events")
THRESHOLD = 10
FINALIZER = "test.konverge.dev/hold"
LEASES, NAMESPACE_OF_LEASES = "leases.coordination.k8s.io", "kube-node-lease"
HEALTHY = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}


def _clock() -> float:
    loop = asyncio.get_running_loop()
    return START + loop.time() if isinstance(loop, VirtualTimeLoop) else datetime.now(UTC).timestamp()


class NodeCluster(WorkloadCluster):
    """A namespace of a cluster, and nodes whose names begin with it; living nodes renew their leases."""

    def __init__(self, client: Client, namespace: str, quiet_namespaces: QuietNamespaces | None = None) -> None:
        super().__init__(client, namespace, quiet_namespaces)
        self.alive: set[str] = set()
        self._heartbeats = client.using(field_manager="kubelet")  # its writes are no activity

    def named(self, name: str) -> str:
        return f"{self.namespace}-{name}"

    @asynccontextmanager
    async def living(self) -> AsyncGenerator[None]:
        """Renew the leases of the nodes that live while the block runs."""
        task = asyncio.create_task(self._renew_leases())
        try:
            yield
        finally:
            task.cancel()

    async def _renew_leases(self) -> None:
        while True:
            for name in sorted(self.alive):
                await self.renew(name)
            await asyncio.sleep(2)

    async def renew(self, name: str) -> None:
        now = MicroTime.of(datetime.fromtimestamp(_clock(), UTC)).to_wire()
        metadata = {"name": self.named(name), "namespace": NAMESPACE_OF_LEASES}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
        await self._heartbeats.apply(Unstructured({**lease, "spec": {"holderIdentity": name, "renewTime": now}}))

    async def node(self, name: str, **conditions: str) -> None:
        """Create a node that lives, with these conditions unless it is healthy."""
        labels = {"topology.kubernetes.io/zone": self.namespace}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.named(name), "labels": labels}}
        await self.client.create(Unstructured(node))
        await self.until_tainted(name)
        await self.post(name, **conditions)
        self.alive.add(name)
        await self.renew(name)

    async def post(self, name: str, **conditions: str) -> None:
        """Post the conditions of a healthy node, with these changes, as a kubelet does."""
        now = datetime.fromtimestamp(_clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        posted = [
            {"type": type_, "status": status, "reason": "Posted", "message": "by the kubelet", **times}
            for type_, status in {**HEALTHY, **conditions}.items()
        ]
        patch = {"status": {"conditions": posted}}
        await self.client.patch("nodes", self.named(name), patch, subresource="status")

    async def taint(self, name: str, *taints: str) -> None:
        """Replace the taints of a node, each written as key=value:Effect."""
        parsed = [one.replace("=", ":").split(":") for one in taints]
        wire = [{"key": key, "value": value, "effect": effect} for key, value, effect in parsed]
        await self.client.patch("nodes", self.named(name), {"spec": {"taints": wire or None}})

    async def pod(self, name: str, node: str = "n1", *, held: bool = False, settle: bool = False, **spec: Any) -> None:
        """Create a ready pod on a node; one that is held has a finalizer. With `settle`, it is ready somewhat later."""
        metadata = {"name": name, "labels": {"app": "web"}, "finalizers": [FINALIZER] if held else None}
        if node:
            spec["nodeName"] = self.named(node)
        whole = {"containers": [{"name": "c", "image": "i"}], **spec}
        await self.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole})
        if settle:
            await self.settle()
        if node:
            await self.report(name, "Running", "True")

    async def report(self, name: str, phase: str, ready: str = "False", **status: Any) -> None:
        now = datetime.fromtimestamp(_clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": now}
        patch = {"status": {"phase": phase, "conditions": [condition], **status}}
        await self.client.patch("pods", name, patch, patch_type="strategic", subresource="status")

    async def taints_of(self, name: str) -> list[str]:
        found = await self.client.get("nodes", self.named(name))
        return [f"{one['key']}:{one['effect']}" for one in found["spec"].get("taints", ())]

    async def until_tainted(self, name: str, *keys: str) -> None:
        """Wait until a node has exactly these taints, without the domain of their keys."""
        expected = sorted(f"node.kubernetes.io/{key}" for key in keys)

        async def is_tainted() -> bool:
            return sorted(await self.taints_of(name)) == expected

        await self.until(is_tainted, f"{name} has the taints {expected}")

    async def until_deleted(self, *names: str) -> None:
        """Wait until pods are gone or being deleted."""

        async def are_deleted() -> bool:
            left = [one for one in await self.pods() if one.metadata.deletion_timestamp is None]
            return not {one.name for one in left} & set(names)

        await self.until(are_deleted, f"{names} deleted")

    async def until_failed(self, *names: str) -> None:
        async def have_failed() -> bool:
            return all(one.status.phase == "Failed" for one in await self.pods() if one.name in names)

        await self.until(have_failed, f"{names} failed")


class NodeNotes(Notes):
    """The nodes, pods and events at each recorded point of a scenario."""

    async def point(self, name: str) -> None:
        async def look() -> Any:
            every = [one for one in await self.cluster.client.list("nodes") if self._is_own(one.name)]
            nodes = {one.name: [_taints(one), masked(one["status"])] for one in every}
            return self._masked(_sorted_conditions({"nodes": nodes, **await seen(self.cluster, "pods")}))

        await self._keep(name, look)

    async def note_events(self) -> None:
        async def look() -> Any:
            nodes = WorkloadCluster(self.cluster.client, "default")
            of_nodes = [one for one in await event_messages(nodes) if self._is_own(one.removeprefix("Node "))]
            return self._masked([*await event_messages(self.cluster), *of_nodes])

        await self._keep("events", look)

    def _is_own(self, name: str) -> bool:
        return name.startswith(f"{self.cluster.namespace}-n")

    def _masked(self, page: Any) -> Any:
        return json.loads(json.dumps(page).replace(self.cluster.namespace, "<namespace>"))


def _sorted_conditions(value: Any) -> Any:
    """Return a page with conditions sorted by type: the kubelet and the evictor race to add theirs to a new pod."""
    if isinstance(value, dict):
        plain = {key: _sorted_conditions(one) for key, one in value.items()}
        if isinstance(plain.get("conditions"), list):
            plain["conditions"].sort(key=lambda condition: condition["type"])
        return plain
    return [_sorted_conditions(one) for one in value] if isinstance(value, list) else value


def _taints(node: Unstructured) -> Any:
    """Return the taints sorted by effect: in the real controller two loops that race write one effect each."""
    return masked(sorted(node["spec"].get("taints", ()), key=lambda taint: taint["effect"]))


@asynccontextmanager
async def with_living_nodes(cluster: NodeCluster) -> AsyncGenerator[None]:
    """Keep the nodes alive while the block runs, then delete the pods: some scenarios count those of the cluster."""
    async with cluster.living():
        yield
    for pod in await cluster.all("pods"):
        await cluster.client.delete(pod, grace_period=0, missing_ok=True)


@asynccontextmanager
async def embedded_node_cluster(namespace: str) -> AsyncGenerator[NodeCluster]:
    """Run the embedded server with our controllers of nodes."""
    server = EmbeddedServer(clock=_clock, seed=1)
    client = Client(InProcessTransport(server.handle))
    await client.create(Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
    cluster = NodeCluster(client, namespace)
    own = Client(InProcessTransport(server.handle))
    async with node_controllers(own, _clock, require_lease=False, threshold=THRESHOLD), cluster.living():
        yield cluster


Scenario = Callable[[NodeCluster, NodeNotes], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}
ALONE: dict[str, Scenario] = {}
"""Scenarios that count objects of the whole cluster."""


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


def tolerations(*keys: str, **more: Any) -> list[dict[str, Any]]:
    return [{"key": key, "operator": "Exists", "effect": "NoExecute", **more} for key in keys]


BOTH = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")


@scenario
async def a_node_without_heartbeats_is_unreachable_until_it_returns(cluster: NodeCluster, notes: NodeNotes) -> None:
    await cluster.node("n1")
    await cluster.node("n2")
    await cluster.until_tainted("n1")
    await cluster.pod("hasty", tolerations=tolerations(*BOTH, tolerationSeconds=3))
    await cluster.pod("patient")
    await cluster.pod("calm", tolerations=tolerations(*BOTH))
    await cluster.pod("elsewhere", "n2")
    await notes.point("alive")
    cluster.alive.discard("n1")
    await cluster.until_tainted("n1", "unreachable:NoSchedule", "unreachable:NoExecute")
    await cluster.until_deleted("hasty")
    await notes.point("unreachable")
    await cluster.pod("late", tolerations=tolerations(*BOTH), settle=True)
    await notes.point("another pod")
    cluster.alive.add("n1")
    await cluster.post("n1")
    await cluster.until_tainted("n1")
    await notes.point("back")
    await notes.note_events()


@scenario
async def conditions_of_a_node_become_taints(cluster: NodeCluster, notes: NodeNotes) -> None:
    await cluster.node("n1", Ready="False")
    await cluster.node("n2")
    await cluster.until_tainted("n1", "not-ready:NoSchedule", "not-ready:NoExecute")
    await cluster.pod("web", settle=True)
    await notes.point("not ready")
    await cluster.post("n1", MemoryPressure="True", DiskPressure="True", NetworkUnavailable="True", PIDPressure="True")
    pressures = [f"{one}:NoSchedule" for one in ("memory-pressure", "disk-pressure", "pid-pressure")]
    await cluster.until_tainted("n1", *pressures, "network-unavailable:NoSchedule")
    await notes.point("pressure")
    await cluster.client.patch("nodes", cluster.named("n1"), {"spec": {"unschedulable": True}})
    await cluster.post("n1")
    await cluster.until_tainted("n1", "unschedulable:NoSchedule")
    await notes.point("cordoned")
    await cluster.client.patch("nodes", cluster.named("n1"), {"spec": {"unschedulable": None}})
    await cluster.post("n1", Ready="False")
    await cluster.until_tainted("n1", "not-ready:NoSchedule", "not-ready:NoExecute")
    cluster.alive.discard("n1")
    await cluster.until_tainted("n1", "unreachable:NoSchedule", "unreachable:NoExecute")
    await notes.point("unreachable")
    await cluster.client.delete("nodes", cluster.named("n1"))
    await notes.note_events()


@scenario
async def a_node_never_posts_its_status(cluster: NodeCluster, notes: NodeNotes) -> None:
    await cluster.node("n2")
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": cluster.named("n1")}}
    node["metadata"]["labels"] = {"topology.kubernetes.io/zone": cluster.namespace}  # type: ignore[index]
    await cluster.client.create(Unstructured(node))
    await cluster.until_tainted("n1", "unreachable:NoSchedule", "unreachable:NoExecute")
    await notes.point("unknown")
    await notes.note_events()


@scenario
async def taints_evict_pods(cluster: NodeCluster, notes: NodeNotes) -> None:
    await cluster.node("n1")
    await cluster.until_tainted("n1")
    await cluster.pod("none", held=True)
    await cluster.pod("other-value", held=True, tolerations=[{"key": "work", "value": "off", "effect": "NoExecute"}])
    await cluster.pod("other-effect", held=True, tolerations=[{"key": "work", "value": "on", "effect": "NoSchedule"}])
    await cluster.pod("never", held=True, tolerations=tolerations("work", tolerationSeconds=0))
    await cluster.pod("short", held=True, tolerations=tolerations("work", tolerationSeconds=3))
    await cluster.pod("long", tolerations=tolerations("work", tolerationSeconds=3000))
    await cluster.pod("any", tolerations=[{"operator": "Exists"}])
    await cluster.pod("leaving", held=True)
    await cluster.client.delete("pods", "leaving")
    await cluster.taint("n1", "work=on:NoExecute")
    await cluster.until_deleted("none", "other-value", "other-effect", "never", "short")
    await notes.point("tainted")
    await cluster.pod("late")
    await cluster.until_deleted("late")
    await cluster.taint("n1", "work=on:NoExecute", "more=on:NoExecute")
    await cluster.until_deleted("long")
    await notes.point("another taint")
    await notes.note_events()


@scenario
async def evictions_are_cancelled(cluster: NodeCluster, notes: NodeNotes) -> None:
    await cluster.node("n1")
    await cluster.until_tainted("n1")
    for name in ("untainted", "tolerant", "deleted", "kept"):
        await cluster.pod(name, tolerations=tolerations("work", tolerationSeconds=3000))
    await cluster.taint("n1", "work=on:NoExecute")
    await cluster.settle()
    present = (await cluster.client.get("pods", "tolerant"))["spec"]["tolerations"]
    more = [*(one for one in present if one["key"] != "work"), *tolerations("work")]
    await cluster.client.patch("pods", "tolerant", {"spec": {"tolerations": more}})
    await cluster.client.delete("pods", "deleted", grace_period=0)
    await cluster.settle()
    await cluster.taint("n1")
    await notes.point("no taint")
    await cluster.taint("n1", "other=on:NoSchedule", "soft=on:PreferNoSchedule")
    await notes.point("no eviction")
    await notes.note_events()


@scenario
async def pods_of_a_deleted_node_are_collected(cluster: NodeCluster, notes: NodeNotes) -> None:
    await cluster.node("n1")
    await cluster.node("n2")
    await cluster.pod("web", held=True)
    await cluster.pod("finished", held=True)
    await cluster.report("finished", "Succeeded")
    await cluster.pod("leaving", held=True)
    await cluster.client.delete("pods", "leaving")
    await cluster.pod("elsewhere", "n2")
    await cluster.pod("static", "none", held=True)
    await cluster.pod("unscheduled", "", held=True)
    await cluster.pod("waiting", "")
    await cluster.client.delete("pods", "unscheduled")
    cluster.alive.discard("n1")
    await cluster.client.delete("nodes", cluster.named("n1"))
    await cluster.until_deleted("web", "finished", "static")
    await cluster.until_failed("web", "leaving", "static", "unscheduled")
    await notes.point("collected")
    await notes.note_events()


@scenario
async def pods_leave_a_node_that_is_out_of_service(cluster: NodeCluster, notes: NodeNotes) -> None:
    await cluster.node("n1", Ready="False")
    await cluster.node("n2")
    await cluster.until_tainted("n1", "not-ready:NoSchedule", "not-ready:NoExecute")
    await cluster.pod("leaving", held=True, settle=True)
    await cluster.pod("staying", tolerations=[{"operator": "Exists"}], settle=True)
    await cluster.client.delete("pods", "leaving")
    await notes.point("leaving")
    found = await cluster.client.get("nodes", cluster.named("n1"))
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "shutdown", "effect": "NoExecute"}
    await cluster.client.patch("nodes", cluster.named("n1"), {"spec": {"taints": [*found["spec"]["taints"], taint]}})
    await cluster.until_failed("leaving")
    await notes.point("out of service")


async def old_finished_pods_are_collected(cluster: NodeCluster, notes: NodeNotes) -> None:
    await cluster.node("n1")
    for number in range(THRESHOLD + 3):
        name = f"p{number:02}"
        await cluster.pod(name)
        await cluster.report(name, "Failed" if number % 2 else "Succeeded", reason="Evicted" if number == 7 else "")
    await cluster.pod("running")

    async def are_collected() -> bool:
        return len(await cluster.pods()) == THRESHOLD + 1

    await cluster.until(are_collected, "few are left")
    await notes.point("collected")


ALONE[old_finished_pods_are_collected.__name__] = old_finished_pods_are_collected
