"""Pods with claims: our scheduler and volume controllers decide as kube-scheduler and kube-controller-manager do.

Nodes, kubelets and the provisioner are simulated on both.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Client, InProcessTransport, load_config
from konverge.objects import Unstructured
from konverge.testing import ControlPlane, run_in_virtual_time
from konverge_cluster.nodes import SimulatedNodes
from node_controllers import node_controllers
from quiet_namespaces import QuietNamespaces
from schedulers import real_scheduler
from volume_clusters import CLAIMS, WATCHED, EmbeddedVolumeCluster, VolumeCluster, clock, provisioner
from volume_scenarios import SIMULATED, VolumeNotes, uses

# A test that starts control planes of its own needs the real programs, as one that asks for the fixture does.
pytestmark = pytest.mark.usefixtures("control_plane")

HOSTNAME = "kubernetes.io/hostname"
LATE = {"volumeBindingMode": "WaitForFirstConsumer"}


class ScheduledCluster(VolumeCluster):
    """A cluster with simulated nodes; what is seen includes the scheduler's decisions."""

    async def run_pod(self, name: str, claim: str, node: str = "") -> None:
        spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "volumes": [uses(claim)]}
        if node:
            spec["nodeSelector"] = {HOSTNAME: node}
        await self.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})

    async def seen(self) -> dict[str, Any]:
        pods = {one.name: _decision(one) for one in await self.all("pods")}
        events = [one for one in await self.event_messages() if _is_decision(one)]
        return {**await super().seen(), "pods": pods, "events": events}


def _is_decision(event: str) -> bool:
    return event.startswith("Pod ") and any(reason in event for reason in (" Scheduled:", " FailedScheduling:"))


def _decision(pod: Unstructured) -> list[Any]:
    conditions = (pod.get("status") or {}).get("conditions", ())
    scheduled = [one for one in conditions if one["type"] == "PodScheduled"]
    fields = ("status", "reason", "message")
    return [pod["spec"].get("nodeName", ""), *({name: one.get(name, "") for name in fields} for one in scheduled)]


def _on_node(node: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}]
    return {"local": {"path": "/data"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}


async def pods_with_claims(cluster: ScheduledCluster, notes: VolumeNotes) -> None:
    third = [{"matchLabelExpressions": [{"key": HOSTNAME, "values": ["node-3"]}]}]
    await cluster.storage_class("late", **LATE)
    await cluster.storage_class("dynamic", SIMULATED, allowedTopologies=third, **LATE)
    await cluster.volume("disk", storageClassName="late", **_on_node("node-2"))
    await cluster.claim("static", storageClassName="late")
    await cluster.claim("dynamic", storageClassName="dynamic")
    await cluster.claim("huge", "1Ti", storageClassName="late")
    await cluster.claim("immediate")
    await cluster.settle()
    await cluster.run_pod("missing", "missing")
    await cluster.run_pod("immediate", "immediate")
    await cluster.run_pod("static", "static")
    await cluster.run_pod("dynamic", "dynamic")
    await cluster.run_pod("huge", "huge")
    await notes.note("scheduled")
    await cluster.run_pod("elsewhere", "static", "node-1")
    await notes.note("elsewhere")
    await cluster.client.delete(CLAIMS, "static")
    await cluster.settle()
    await cluster.run_pod("late", "static")
    await notes.note("being deleted")
    await cluster.volume("large", "2Ti", storageClassName="late", **_on_node("node-1"))
    await cluster.volume("found", **_on_node("node-2"))  # one node fits, so that the choice is not a score
    await cluster.claim("missing", storageClassName="dynamic")
    await notes.note("appeared")


async def run_embedded() -> dict[str, Any]:
    base = EmbeddedVolumeCluster()
    cluster = ScheduledCluster(base.client, base.namespace)
    own = [Client(InProcessTransport(base.server.handle)) for _ in range(3)]
    nodes = SimulatedNodes(own[0], nodes=3, heartbeat=0, clock=clock)
    taints = node_controllers(own[2], clock)
    async with base.controllers(), provisioner(own[1], clock=clock), taints, nodes.running():
        notes = VolumeNotes(cluster)
        await pods_with_claims(cluster, notes)
        return notes.pages


async def run_real(plane: ControlPlane, expected: dict[str, Any]) -> dict[str, Any]:
    async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client:
        await client.create(Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "case"}}))
        nodes = SimulatedNodes(client, nodes=3, schedules=False)
        async with QuietNamespaces(WATCHED).watched(client) as quiet, provisioner(client), nodes.running():
            cluster = ScheduledCluster(client, "case", quiet)

            async def has_account() -> bool:
                return any(one.name == "default" for one in await cluster.all("serviceaccounts"))

            await cluster.until(has_account, "the default service account")
            notes = VolumeNotes(cluster, expected)
            await pods_with_claims(cluster, notes)
            return notes.pages


def test_pods_with_claims_are_scheduled_as_by_kube_scheduler() -> None:
    ours = run_in_virtual_time(run_embedded(), debug=False)
    with ControlPlane(controller_manager=True) as plane, real_scheduler(plane):
        theirs = asyncio.run(run_real(plane, ours))

    for point, page in theirs.items():
        for part in page:
            assert ours[point][part] == page[part], f"{point}: {part}"
