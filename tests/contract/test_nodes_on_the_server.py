"""The stand-in for nodes beside a real API server and a real controller manager: a control plane becomes a cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge import Client
from konverge.client import has_condition, is_deployment_complete, load_config
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.batch.v1 import Job
from konverge.objects import Unstructured
from konverge.testing import ControlPlane
from konverge_cluster.nodes import Behavior, SimulatedNodes
from namespace_scenarios import until
from running_clusters import conditions, deployment, pod, state

# A test that starts control planes of its own needs the real programs, as one that asks for the fixture does.
pytestmark = pytest.mark.usefixtures("control_plane")

LIMIT = 120
HEARTBEAT = 2.0
# A node is gone after eight heartbeats that did not come: soon, and yet not when this machine only has much to do.
IMPATIENT = ["--node-monitor-period=1s", "--node-monitor-grace-period=16s"]


@pytest.fixture(scope="module")
def managed_plane() -> Iterator[ControlPlane]:
    with ControlPlane(controller_manager=True, manager_flags=IMPATIENT) as plane:
        yield plane


def connect(plane: ControlPlane) -> Client:
    return Client.connect(load_config(kubeconfig=plane.kubeconfig))


@asynccontextmanager
async def played(plane: ControlPlane) -> AsyncGenerator[tuple[Client, SimulatedNodes]]:
    """Give a client of a control plane that has two nodes now."""
    async with (
        connect(plane) as client,
        connect(plane) as own,
        SimulatedNodes(own, nodes=2, heartbeat=HEARTBEAT).running() as nodes,
    ):
        yield client, nodes


@pytest.mark.real_time(limit=400)
async def test_a_deployment_on_a_real_control_plane_becomes_ready_rolls_and_goes(managed_plane: ControlPlane) -> None:
    async with played(managed_plane) as (client, nodes):
        await client.create(deployment("web", replicas=3))
        await client.wait_for(Deployment, "web", is_deployment_complete(), timeout=LIMIT)
        said = await asyncio.to_thread(managed_plane.kubectl, "get", "nodes,pods", "-o", "json")
        items = json.loads(said)["items"]
        ready = [conditions(Unstructured(one))["Ready"] for one in items]
        assert ready == ["True"] * 5
        assert {one["spec"]["nodeName"] for one in items if one["kind"] == "Pod"} == {"node-1", "node-2"}

        nodes.program(Behavior(image="app:2", crashes=1))
        change = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "app:2"}]}}}}
        await client.patch(Deployment, "web", change, patch_type="strategic")
        await client.wait_for(Deployment, "web", is_deployment_complete(), timeout=LIMIT)

        async def all_new() -> bool:
            pods = await client.list("pods", namespace="default", labels="app=web")
            images = [one["spec"]["containers"][0]["image"] for one in pods]
            return images == ["app:2"] * 3 and all(state(one)["restartCount"] == 1 for one in pods)

        await until(all_new, "only new pods, which crashed once, are left", LIMIT)
        await client.delete(Deployment, "web")

        async def none_left() -> bool:
            return not await client.list("pods", namespace="default")

        await until(none_left, "the pods are gone", LIMIT)


@pytest.mark.real_time(limit=400)
async def test_pods_fail_on_a_real_control_plane_as_they_are_told_to(managed_plane: ControlPlane) -> None:
    async with played(managed_plane) as (client, _):
        job: dict[str, Any] = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "sum", "namespace": "default"},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "job:1"}]}}},
        }
        await client.create(Unstructured(job))
        await client.create(pod("unpulled", annotations={"nodes.konverge.dev/pull-fails": "true"}))
        await client.create(pod("unfit", nodeSelector={"no": "such"}))
        await client.wait_for(Job, "sum", has_condition("Complete"), timeout=LIMIT)

        async def is_stuck() -> bool:
            found = await client.get("pods", "unpulled")
            waits = found["status"].get("containerStatuses") and state(found)["state"].get("waiting")
            return bool(waits) and waits["reason"] == "ImagePullBackOff"

        async def is_unfit() -> bool:
            found = await client.get("pods", "unfit")
            return conditions(found).get("PodScheduled") == "False"

        await until(is_stuck, "the image cannot be pulled", LIMIT)
        await until(is_unfit, "no node fits", LIMIT)
        for name in ("unpulled", "unfit"):
            await client.delete("pods", name)


@pytest.mark.real_time(limit=400)
async def test_the_real_controller_manager_finds_out_that_a_node_is_gone(managed_plane: ControlPlane) -> None:
    async with played(managed_plane) as (client, nodes):
        tolerations = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
            for key in ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
        ]
        await client.create(pod("lost", nodeSelector={"kubernetes.io/hostname": "node-1"}, tolerations=tolerations))

        async def runs() -> bool:
            return conditions(await client.get("pods", "lost")).get("Ready") == "True"

        await until(runs, "the pod is ready", LIMIT)
        nodes.stop_node("node-1")

        async def is_unknown() -> bool:
            return conditions(await client.get("nodes", "node-1"))["Ready"] == "Unknown"

        async def is_evicted() -> bool:
            return "deletionTimestamp" in (await client.get("pods", "lost")).metadata

        await until(is_unknown, "the node is found out", 180)
        await until(is_evicted, "its pod is told to go", 180)
        nodes.start_node("node-1")

        async def is_gone() -> bool:
            return not [one for one in await client.list("pods", namespace="default") if one.name == "lost"]

        await until(is_gone, "the pod goes when its node is back", LIMIT)
