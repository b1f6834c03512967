"""The controllers of claims and volumes on the embedded server, on virtual time.

These tests are about behaviour, without faults, on the rig of the contract tests. The simulation under faults is in
`test_workloads_under_faults.py`.
"""

from __future__ import annotations

from konverge.objects import Unstructured
from konverge.testing import settle
from konverge_cluster.testing import TestCluster
from volume_clusters import CLAIMS, VOLUMES, embedded_volume_cluster
from volume_scenarios import SIMULATED


async def test_many_claims_get_distinct_volumes() -> None:
    async with embedded_volume_cluster() as cluster:
        for number in range(30):
            await cluster.claim(f"c{number}")
        for number in range(20):
            await cluster.volume(f"v{number}")
        await settle()

        claims = await cluster.all(CLAIMS)
        bound = [one["spec"]["volumeName"] for one in claims if one["status"]["phase"] == "Bound"]
        assert len(bound) == len(set(bound)) == 20


async def test_a_namespace_with_claims_is_deleted_with_their_volumes(cluster: TestCluster) -> None:
    client = cluster.client("shop")
    await client.create(Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
    await client.create(
        Unstructured(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "now"},
                "provisioner": SIMULATED,
            }
        )
    )
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "now"}
    metadata = {"name": "data", "namespace": "shop"}
    await client.create(
        Unstructured({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    )
    await cluster.settle()
    assert [one["status"]["phase"] for one in await client.list(VOLUMES)] == ["Bound"]

    await client.delete("namespaces", "shop")
    await cluster.settle()

    assert [one.name for one in await client.list("namespaces") if one.name == "shop"] == []
    assert await client.list(VOLUMES) == []


async def test_a_fresh_cluster_has_the_default_class_of_kind(cluster: TestCluster) -> None:
    (standard,) = await cluster.client().list("storageclasses.storage.k8s.io")

    assert standard.name == "standard"
    assert standard["provisioner"] == "rancher.io/local-path"
    assert standard["volumeBindingMode"] == "WaitForFirstConsumer"
    assert standard.metadata["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}


async def test_a_conflicting_claim_of_an_ephemeral_volume_blocks_the_pod_until_it_is_gone() -> None:
    async with embedded_volume_cluster() as cluster:
        await cluster.storage_class("now", SIMULATED)
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        spec["storageClassName"] = cluster.named("now")
        await cluster.claim("web-cache")
        await cluster.pod("web", {"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}})
        await settle()
        assert (await cluster.get(CLAIMS, "web-cache")).metadata.get("ownerReferences") is None

        await cluster.delete(CLAIMS, "web-cache")

        claim = await cluster.get(CLAIMS, "web-cache")
        assert [one["name"] for one in claim.metadata["ownerReferences"]] == ["web"]
        assert claim["status"]["phase"] == "Bound"
