"""The controller of StatefulSets on the embedded server, on virtual time; the test acts as the kubelet.

These tests are about behaviour, step by step, without faults, on the rig of the contract tests. The simulation under
faults is in `test_workloads_under_faults.py`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from konverge.k8s.apps.v1 import StatefulSet
from konverge.objects import Unstructured
from konverge.testing import settle
from konverge_cluster.workloads.stateful_sets.revisions import new_revision
from stateful_set_scenarios import (
    change,
    claim_template,
    embedded_cluster_with_garbage_collection,
    follow,
    stateful_set,
)
from workload_clusters import NODE, EmbeddedWorkloadCluster, embedded_workload_cluster
from workload_scenarios import image
from workload_transports import CountingTransport

KIND = "statefulsets.apps"
STATE = (KIND, "controllerrevisions.apps", "persistentvolumeclaims")


async def new_cluster() -> EmbeddedWorkloadCluster:
    cluster = EmbeddedWorkloadCluster()
    await cluster.client.create(Unstructured(NODE))
    return cluster


async def images(cluster: EmbeddedWorkloadCluster) -> dict[str, str | None]:
    return {pod.name: pod.spec.containers[0].image for pod in await cluster.pods()}


async def test_a_stateful_set_in_the_desired_state_causes_no_write_not_even_after_a_restart() -> None:
    cluster = await new_cluster()
    async with cluster.controllers():
        await cluster.create(stateful_set(volumeClaimTemplates=[claim_template()]))
        await follow(cluster)
        await change(cluster, image("i:2"))
        await follow(cluster)
    counting = CountingTransport(cluster)
    async with cluster.controllers(counting):
        await settle()
        await cluster.merge("pods", "db-0", {"metadata": {"annotations": {"a": "b"}}})
        await settle()
    assert counting.writes == []


async def test_each_pod_costs_one_create_and_two_status_writes() -> None:
    cluster = await new_cluster()
    counting = CountingTransport(cluster)
    async with cluster.controllers(counting):
        await cluster.create(stateful_set(2))
        await follow(cluster)
    pods = "/api/v1/namespaces/default/pods"
    status = f"PATCH /apis/apps/v1/namespaces/default/{KIND.removesuffix('.apps')}/db/status"
    assert counting.writes == [
        "POST /apis/apps/v1/namespaces/default/controllerrevisions",
        *[f"POST {pods}", status] * 2,
        status,
    ]


async def test_pods_become_available_one_after_the_other_with_min_ready_seconds() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.create(stateful_set(3, minReadySeconds=30))
        started = asyncio.get_running_loop().time()
        for number in range(3):
            await settle()
            assert len(await cluster.pods()) == number + 1
            await cluster.start()
            await asyncio.sleep(29)
            await settle()
            assert len(await cluster.pods()) == number + 1
            await asyncio.sleep(2)
            await settle()
        assert asyncio.get_running_loop().time() - started == 93
        assert (await cluster.get(KIND, "db"))["status"]["availableReplicas"] == 3


async def test_a_revision_name_taken_by_other_data_is_a_collision() -> None:
    cluster = await new_cluster()
    await cluster.create(stateful_set(1))
    taken = new_revision(await cluster.client.get(StatefulSet, "db"), 1, 0).name
    other = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": taken}, "revision": 1}
    await cluster.create({**other, "data": {"other": True}})
    async with cluster.controllers():
        await follow(cluster)
    status = (await cluster.get(KIND, "db"))["status"]
    assert (status["collisionCount"], status["availableReplicas"]) == (1, 1)
    assert status["currentRevision"] != taken


async def test_a_pod_waits_for_the_claim_that_is_deleted_with_its_predecessor() -> None:
    async with embedded_cluster_with_garbage_collection() as cluster:
        policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
        claims: dict[str, Any] = {
            "volumeClaimTemplates": [claim_template()],
            "persistentVolumeClaimRetentionPolicy": policy,
        }
        await cluster.create(stateful_set(2, **claims))
        await follow(cluster)
        before = (await cluster.get("persistentvolumeclaims", "data-db-1")).uid
        hold = {"metadata": {"finalizers": ["example.com/hold"]}}
        await cluster.merge("persistentvolumeclaims", "data-db-1", hold)
        await change(cluster, {"spec": {"replicas": 1}})
        await change(cluster, {"spec": {"replicas": 2}})
        await cluster.remove_deleted()
        claim = await cluster.get("persistentvolumeclaims", "data-db-1")
        assert "deletionTimestamp" in claim.metadata
        assert [pod.name for pod in await cluster.pods()] == ["db-0"]
        await cluster.merge("persistentvolumeclaims", claim.name, {"metadata": {"finalizers": None}})
        await follow(cluster)
        assert (await cluster.get("persistentvolumeclaims", "data-db-1")).uid != before
        assert [pod.name for pod in await cluster.pods()] == ["db-0", "db-1"]


async def test_a_claim_that_a_pending_pod_lacks_is_created_again() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.create(stateful_set(1, volumeClaimTemplates=[claim_template()]))
        await settle()
        await cluster.merge("persistentvolumeclaims", "data-db-0", {"metadata": {"finalizers": None}})
        await cluster.client.delete("persistentvolumeclaims", "data-db-0")
        await settle()
        assert [one.name for one in await cluster.all("persistentvolumeclaims")] == ["data-db-0"]


async def test_a_stateful_set_in_a_terminating_namespace_is_not_retried_forever() -> None:
    cluster = EmbeddedWorkloadCluster()
    await cluster.client.create(Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}}))
    wire = stateful_set()
    wire["metadata"]["namespace"] = "going"
    await cluster.client.create(Unstructured(wire))
    await cluster.client.delete("namespaces", "going")
    counting = CountingTransport(cluster)
    async with cluster.controllers(counting):
        await settle()
        await asyncio.sleep(100)
        await settle()
    assert counting.writes == ["POST /apis/apps/v1/namespaces/going/controllerrevisions"]
