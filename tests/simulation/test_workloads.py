"""The workload controllers on the embedded server, on virtual time; the test acts as the kubelet.

These tests are about behaviour, step by step, without faults, on the rig of the contract tests. The simulation of the
same controllers under faults is in `test_workloads_under_faults.py`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.k8s.apps.v1 import Deployment
from konverge.objects import Unstructured
from konverge.testing import settle
from konverge_cluster.workloads.deployments.templates import replica_set_name, template_hash
from workload_clusters import NODE, EmbeddedWorkloadCluster, embedded_workload_cluster
from workload_scenarios import deployment, follow, image, job, service
from workload_transports import CountingTransport

ROLLOUTS = ("deployments.apps", "replicasets.apps")


async def test_objects_in_the_desired_state_cause_no_write_not_even_after_a_restart() -> None:
    cluster = EmbeddedWorkloadCluster()
    await cluster.client.create(Unstructured(NODE))
    async with cluster.controllers():
        await cluster.create(deployment())
        await cluster.create(service())
        await cluster.create(job(parallelism=2, completions=5))
        await cluster.settle()
        await follow(cluster)
    counting = CountingTransport(cluster)
    async with cluster.controllers(counting):
        await settle()
        await cluster.merge("pods", (await cluster.pods())[0].name, {"metadata": {"annotations": {"a": "b"}}})
        await settle()
    assert counting.writes == []


async def test_a_pod_that_is_deleted_is_replaced() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.create(deployment())
        await follow(cluster)
        deleted = (await cluster.pods())[0]
        await cluster.client.delete("pods", deleted.name)
        await follow(cluster)
        names = [pod.name for pod in await cluster.pods()]
        assert len(names) == 3
        assert deleted.name not in names


async def test_a_replica_set_edited_by_hand_is_scaled_back() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.create(deployment())
        await follow(cluster)
        (one,) = await cluster.all("replicasets.apps")
        await cluster.merge("replicasets.apps", one.name, {"spec": {"replicas": 7}})
        await follow(cluster)
        assert len(await cluster.pods()) == 3


async def test_pods_become_available_after_min_ready_seconds() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.create(deployment(2, minReadySeconds=30))
        await follow(cluster)
        before = (await cluster.get("deployments.apps", "web"))["status"]
        assert (before["readyReplicas"], before.get("availableReplicas")) == (2, None)
        await asyncio.sleep(31)
        await settle()
        assert (await cluster.get("deployments.apps", "web"))["status"]["availableReplicas"] == 2


async def test_a_name_taken_by_another_replica_set_is_a_collision() -> None:
    cluster = EmbeddedWorkloadCluster()
    await cluster.client.create(Unstructured(NODE))
    await cluster.create(deployment(1))
    web = await cluster.client.get(Deployment, "web")
    taken = replica_set_name("web", template_hash(web.spec.template, None))
    labels = {"matchLabels": {"x": "y"}}
    template = {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    other = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": taken}}
    await cluster.create({**other, "spec": {"replicas": 0, "selector": labels, "template": template}})
    async with cluster.controllers():
        await follow(cluster)
    status = (await cluster.get("deployments.apps", "web"))["status"]
    assert (status["collisionCount"], status["availableReplicas"]) == (1, 1)


async def has_waiting(cluster: EmbeddedWorkloadCluster) -> bool:
    return any(pod.status.phase == "Pending" for pod in await cluster.pods())


async def test_a_failed_pod_of_a_job_is_replaced_with_exponential_backoff() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.create(job(backoffLimit=3))
        await settle()
        loop = asyncio.get_running_loop()
        waits = []
        for _ in range(3):
            await cluster.start()
            await cluster.end("Failed", code=1)
            failed = loop.time()
            await cluster.until(lambda: has_waiting(cluster), "another pod")
            waits.append(round(loop.time() - failed))
        assert waits == [10, 20, 40]


async def test_a_finished_job_is_deleted_after_its_ttl() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.create(job(ttlSecondsAfterFinished=100))
        await settle()
        await cluster.start()
        await cluster.end("Succeeded")
        await asyncio.sleep(99)
        await settle()
        assert [one.metadata.get("deletionTimestamp") for one in await cluster.all("jobs.batch")] == [None]
        await asyncio.sleep(2)
        await settle()
        (left,) = await cluster.all("jobs.batch")
        assert left.metadata["finalizers"] == ["foregroundDeletion"]


async def test_a_job_that_another_controller_manages_is_ignored() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.create(job(managedBy="example.com/queue"))
        await settle()
        assert await cluster.pods() == []


async def test_the_endpoints_of_a_pod_are_added_when_its_node_exists() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.create(service())
        await cluster.create(deployment(1))
        await settle()
        (pod,) = await cluster.pods()
        await cluster.bind(pod, "late")
        ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z"}]
        await cluster.write_status(pod, "Running", podIP="10.1.0.1", podIPs=[{"ip": "10.1.0.1"}], conditions=ready)
        await settle()
        (empty,) = await cluster.all("endpointslices.discovery.k8s.io", "kubernetes.io/service-name=web")
        assert not empty.get("endpoints")
        await cluster.client.create(Unstructured({**NODE, "metadata": {"name": "late"}}))
        await settle()
        (filled,) = await cluster.all("endpointslices.discovery.k8s.io", "kubernetes.io/service-name=web")
        assert [one["addresses"] for one in filled["endpoints"]] == [["10.1.0.1"]]


async def test_services_without_a_selector_are_ignored() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.create(service(selector=None))
        await settle()
        assert await cluster.all("endpointslices.discovery.k8s.io", "kubernetes.io/service-name=web") == []


async def test_a_deployment_in_a_terminating_namespace_is_not_retried_forever() -> None:
    cluster = EmbeddedWorkloadCluster()
    await cluster.client.create(Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}}))
    wire = deployment()
    wire["metadata"]["namespace"] = "going"
    await cluster.client.create(Unstructured(wire))
    await cluster.client.delete("namespaces", "going")
    counting = CountingTransport(cluster)
    async with cluster.controllers(counting):
        await settle()
        await asyncio.sleep(100)
        await settle()
    refused = [one for one in counting.writes if one.endswith("replicasets")]
    assert len(refused) == 1


async def test_image_changes_create_revisions() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.create(deployment(2))
        await follow(cluster)
        for number in (2, 3, 2):
            await cluster.merge("deployments.apps", "web", image(f"i:{number}"))
            await follow(cluster)
        web = await cluster.get("deployments.apps", "web")
        assert web.metadata["annotations"]["deployment.kubernetes.io/revision"] == "4"
        sets = {
            one.metadata["annotations"]["deployment.kubernetes.io/revision"]: one.metadata["annotations"].get(
                "deployment.kubernetes.io/revision-history"
            )
            for one in await cluster.all("replicasets.apps")
        }
        assert sets == {"1": None, "3": None, "4": "2"}


@pytest.mark.parametrize("propagation", ["Foreground", "Background"])
async def test_pods_of_a_deleted_job_lose_their_finalizers(propagation: Any) -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.create(job(parallelism=2, completions=2))
        await settle()
        await cluster.start(count=1)
        assert all(pod.metadata.finalizers for pod in await cluster.pods())
        await cluster.client.delete("jobs.batch", "work", propagation=propagation)
        await settle()
        assert [pod.metadata.finalizers for pod in await cluster.pods()] == [[], []]


async def test_deleted_endpoints_are_created_again() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.create(service())
        await settle()
        (one,) = await cluster.all("endpointslices.discovery.k8s.io", "kubernetes.io/service-name=web")
        await cluster.client.delete("endpointslices.discovery.k8s.io", one.name)
        await settle()
        assert len(await cluster.all("endpointslices.discovery.k8s.io", "kubernetes.io/service-name=web")) == 1
