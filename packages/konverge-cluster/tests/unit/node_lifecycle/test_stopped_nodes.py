"""Nodes that stop, on the embedded server and on virtual time."""

from __future__ import annotations

import asyncio

from konverge_cluster.testing import TestCluster
from konverge_cluster.testing.clusters import virtual_clock
from running_clusters import conditions, deployment, running_cluster


async def execute_taints(cluster: object, name: str) -> list[str]:
    found = await cluster.client.get("nodes", name)  # type: ignore[attr-defined]
    return [one["key"] for one in found["spec"].get("taints", ()) if one["effect"] == "NoExecute"]


async def test_a_node_with_heartbeats_stays_ready() -> None:
    async with running_cluster(heartbeat=10.0) as cluster:
        await asyncio.sleep(600)
        assert {conditions(one)["Ready"] for one in await cluster.client.list("nodes")} == {"True"}


async def test_a_node_with_heartbeats_that_stops_is_found_after_the_grace_period() -> None:
    async with running_cluster(heartbeat=10.0) as cluster:
        await asyncio.sleep(600)
        cluster.nodes.stop_node("node-1")
        await asyncio.sleep(38)
        assert conditions(await cluster.client.get("nodes", "node-1"))["Ready"] == "True"
        await asyncio.sleep(15)
        assert conditions(await cluster.client.get("nodes", "node-1"))["Ready"] == "Unknown"
        assert await execute_taints(cluster, "node-1") == ["node.kubernetes.io/unreachable"]


async def test_no_pod_is_evicted_when_all_nodes_stop() -> None:
    async with running_cluster(workloads=True) as cluster:
        await cluster.client.create(deployment("web", replicas=2))
        await asyncio.sleep(10)
        cluster.nodes.stop_node("node-1")
        await asyncio.sleep(100)
        assert await execute_taints(cluster, "node-1") == ["node.kubernetes.io/unreachable"]
        cluster.nodes.stop_node("node-2")
        await asyncio.sleep(1000)
        assert await execute_taints(cluster, "node-1") == await execute_taints(cluster, "node-2") == []
        assert not [one for one in await cluster.pods() if "deletionTimestamp" in one.metadata]

        cluster.nodes.start_node("node-2")
        await asyncio.sleep(20)
        assert await execute_taints(cluster, "node-1") == ["node.kubernetes.io/unreachable"]


async def test_two_nodes_that_stop_are_tainted_one_after_the_other() -> None:
    async with running_cluster(nodes=5) as cluster:
        for name in ("node-1", "node-2"):
            cluster.nodes.stop_node(name)
        await asyncio.sleep(52)
        assert len([one for name in ("node-1", "node-2") for one in await execute_taints(cluster, name)]) == 1
        await asyncio.sleep(15)
        assert len([one for name in ("node-1", "node-2") for one in await execute_taints(cluster, name)]) == 2


async def test_the_embedded_cluster_replaces_the_pods_of_a_stopped_node() -> None:
    async with TestCluster(nodes=2, clock=virtual_clock) as cluster:
        client = cluster.client()
        await client.create(deployment("web", replicas=2))
        await cluster.settle()
        cluster.nodes.stop_node("node-1")
        await asyncio.sleep(400)
        found = await client.get("deployments.apps", "web")
        assert found["status"]["readyReplicas"] == 2
        events = {one["reason"] for one in await client.list("events")}
        assert {"RegisteredNode", "NodeNotReady", "TaintManagerEviction"} <= events


async def test_a_deleted_node_is_reported() -> None:
    async with running_cluster() as cluster:
        await cluster.client.delete("nodes", "node-1")
        await asyncio.sleep(5)
        assert "RemovingNode: Node node-1 event: Removing Node node-1 from Controller" in await cluster.events("node-1")
