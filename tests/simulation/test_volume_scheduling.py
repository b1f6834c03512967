"""Pods with claims on an embedded cluster, on virtual time: they wait for their volumes, and run where these are."""

from __future__ import annotations

import asyncio
from typing import Any

from konverge.client import Client
from konverge.objects import Unstructured
from konverge_cluster.testing.fixtures import TestCluster
from konverge_cluster.volumes.provisioner import SIMULATED

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
HOSTNAME = "kubernetes.io/hostname"
LATE = {"volumeBindingMode": "WaitForFirstConsumer"}


def claim(name: str = "data", **spec: Any) -> Unstructured:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    metadata = {"name": name, "namespace": "default"}
    return Unstructured({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": whole})


def pod(name: str = "web", *claims: str, **spec: Any) -> Unstructured:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims or ("data",)]
    whole = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes, **spec}
    metadata = {"name": name, "namespace": "default"}
    return Unstructured({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole})


def storage_class(name: str, provisioner: str = SIMULATED, **more: Any) -> Unstructured:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return Unstructured({**kind, "provisioner": provisioner, **more})


def local_volume(name: str, node: str) -> Unstructured:
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}]
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    return Unstructured({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})


async def ready(cluster: TestCluster) -> Client:
    await cluster.settle()
    return cluster.client()


async def node_of(client: Client, name: str = "web") -> str:
    found = await client.get("pods", name)
    assert (found["status"]["phase"] == "Running") == ("nodeName" in found["spec"])
    return str(found["spec"].get("nodeName", ""))


async def why_pending(client: Client, name: str = "web") -> str:
    found = await client.get("pods", name)
    (condition,) = [one for one in found["status"]["conditions"] if one["type"] == "PodScheduled"]
    assert condition["status"] == "False"
    return str(condition["message"])


async def test_a_claim_of_the_default_class_is_provisioned_on_the_node_of_its_first_pod(cluster: TestCluster) -> None:
    client = await ready(cluster)
    await client.create(claim())
    await cluster.settle()
    assert (await client.get(CLAIMS, "data"))["status"] == {"phase": "Pending"}

    await client.create(pod(nodeSelector={HOSTNAME: "node-2"}))
    await cluster.settle()

    assert await node_of(client) == "node-2"
    bound = await client.get(CLAIMS, "data")
    assert bound["status"]["phase"] == "Bound"
    assert bound.metadata["annotations"]["volume.kubernetes.io/selected-node"] == "node-2"
    await client.create(pod("other"))  # its claim keeps it on that node
    await cluster.settle()
    assert await node_of(client, "other") == "node-2"
    await client.create(pod("elsewhere", nodeSelector={HOSTNAME: "node-1"}))
    await cluster.settle()
    assert "1 node(s) didn't match PersistentVolume's node affinity" in await why_pending(client, "elsewhere")


async def test_a_pod_waits_for_a_missing_claim_and_for_an_unbound_immediate_one(cluster: TestCluster) -> None:
    client = await ready(cluster)
    await client.create(pod())
    await cluster.settle()
    assert await why_pending(client) == '0/3 nodes are available: persistentvolumeclaim "data" not found. not found'

    await client.create(claim(storageClassName="now"))
    await cluster.settle()
    expected = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    assert await why_pending(client) == expected

    await client.create(storage_class("now"))
    await cluster.settle()
    assert await node_of(client)


async def test_a_pod_that_waits_for_its_volume_is_scheduled_where_a_volume_appears(cluster: TestCluster) -> None:
    client = await ready(cluster)
    await client.create(storage_class("local", "kubernetes.io/no-provisioner", **LATE))
    await client.create(claim(storageClassName="local"))
    await client.create(pod())
    await cluster.settle()
    assert "3 node(s) didn't find available persistent volumes to bind" in await why_pending(client)

    await client.create(local_volume("disk", "node-3"))
    await cluster.settle()

    assert await node_of(client) == "node-3"
    assert (await client.get(CLAIMS, "data"))["spec"]["volumeName"] == "disk"


async def test_pods_that_are_scheduled_at_once_do_not_share_a_volume(cluster: TestCluster) -> None:
    client = await ready(cluster)
    await client.create(storage_class("local", "kubernetes.io/no-provisioner", **LATE))
    for number in range(3):
        await client.create(local_volume(f"disk-{number}", f"node-{number + 1}"))
    for number in range(4):
        await client.create(claim(f"c{number}", storageClassName="local"))
        await client.create(pod(f"p{number}", f"c{number}"))
    await cluster.settle()

    nodes = [await node_of(client, f"p{number}") for number in range(4)]
    assert sorted(nodes) == ["", "node-1", "node-2", "node-3"]


async def test_a_volume_that_is_never_provisioned_ends_in_a_timeout_and_a_retry(cluster: TestCluster) -> None:
    client = await ready(cluster)
    await client.create(storage_class("absent", "example.com/none", **LATE))
    await client.create(claim(storageClassName="absent"))
    await client.create(pod())
    await cluster.settle()
    annotations = (await client.get(CLAIMS, "data")).metadata["annotations"]
    assert annotations["volume.kubernetes.io/selected-node"] == "node-1"

    await asyncio.sleep(600)
    await cluster.settle()

    expected = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    assert await why_pending(client) == expected


async def test_a_node_that_is_deleted_before_its_volume_exists_is_replaced(cluster: TestCluster) -> None:
    client = await ready(cluster)
    await client.create(claim())
    await client.patch(CLAIMS, "data", {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "gone"}}})
    await client.create(pod())
    await cluster.settle()

    assert await node_of(client)
    reasons = {one["reason"] for one in await client.list("events") if one["involvedObject"]["name"] == "data"}
    assert {"ProvisioningFailed", "ProvisioningSucceeded"} <= reasons


async def test_a_volume_for_one_pod_is_used_by_one_pod(cluster: TestCluster) -> None:
    client = await ready(cluster)
    await client.create(claim(accessModes=["ReadWriteOncePod"]))
    await client.create(pod("first"))
    await cluster.settle()
    await client.create(pod("second"))
    await cluster.settle()
    assert await node_of(client, "first")
    assert "ReadWriteOncePod access mode already in-use by another pod" in await why_pending(client, "second")

    await client.delete("pods", "first")
    await cluster.settle()
    assert await node_of(client, "second")


async def test_a_file_system_is_resized_when_a_pod_uses_it(cluster: TestCluster) -> None:
    client = await ready(cluster)
    await client.create(storage_class("now", allowVolumeExpansion=True))
    await client.create(claim(storageClassName="now"))
    await cluster.settle()
    await client.patch(CLAIMS, "data", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    await cluster.settle()
    pending = (await client.get(CLAIMS, "data"))["status"]
    assert [one["type"] for one in pending["conditions"]] == ["Resizing", "FileSystemResizePending"]
    assert pending["capacity"] == {"storage": "1Gi"}
    assert pending["allocatedResourceStatuses"] == {"storage": "NodeResizePending"}

    await client.create(pod())
    await cluster.settle()

    done = (await client.get(CLAIMS, "data"))["status"]
    assert done["capacity"] == {"storage": "2Gi"}
    assert "conditions" not in done
    assert "allocatedResourceStatuses" not in done
    (volume,) = await client.list(VOLUMES)
    assert "volume.alpha.kubernetes.io/pre-resize-capacity" not in volume.metadata["annotations"]
    events = [one for one in await client.list("events") if one["reason"] == "FileSystemResizeSuccessful"]
    assert sorted(one["involvedObject"]["kind"] for one in events) == ["PersistentVolumeClaim", "Pod"]


async def test_an_ephemeral_volume_lives_as_long_as_its_pod(cluster: TestCluster) -> None:
    client = await ready(cluster)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    web = pod()
    web["spec"]["volumes"] = [{"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]
    await client.create(web)
    await cluster.settle()
    assert await node_of(client)
    assert [one.name for one in await client.list(CLAIMS)] == ["web-cache"]

    await client.delete("pods", "web")
    await cluster.settle()
    assert await client.list(CLAIMS) == []
    assert await client.list(VOLUMES) == []
