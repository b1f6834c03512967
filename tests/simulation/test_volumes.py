"""The controllers of claims and volumes on the embedded server, on virtual time, with crashes and conflicts."""

from __future__ import annotations

import asyncio
import logging
from random import Random
from typing import Any

import pytest

from konverge.client import Client, InProcessTransport
from konverge.errors import TransportError
from konverge.objects import Unstructured
from konverge.testing import settle
from konverge.testing.faults import status_response
from konverge.wire.messages import BufferedResponse, Request, Response
from konverge_cluster.testing import TestCluster
from volume_clusters import CLAIMS, VOLUMES, EmbeddedVolumeCluster, clock, embedded_volume_cluster, provisioner
from volume_scenarios import SIMULATED
from workload_clusters import NODE


class InterruptedTransport:
    """A transport that refuses writes after a number of them, and fails a share of the others."""

    def __init__(self, cluster: EmbeddedVolumeCluster, *, max_writes: int = 10**9, seed: int | None = None) -> None:
        self._inner = InProcessTransport(cluster.server.handle)
        self._max_writes = max_writes
        self._random = Random(seed) if seed is not None else None
        self.writes: list[str] = []

    async def send(self, request: Request) -> Response:
        if request.method == "GET" or "/events" in request.path or "accessreviews" in request.path:
            return await self._inner.send(request)
        if len(self.writes) >= self._max_writes:
            raise TransportError("refused", sent=False)
        self.writes.append(f"{request.method} {request.path}")
        fault = self._random.choice(["", "", "refused", "lost", "conflict"]) if self._random is not None else ""
        if fault == "refused":
            raise TransportError("refused", sent=False)
        if fault == "conflict":
            response = status_response(409, reason="Conflict")
            return BufferedResponse(409, response.body, response.headers)
        if fault == "lost":
            await (await self._inner.send(request)).read()
            raise TransportError("the response was lost")
        return await self._inner.send(request)

    async def close(self) -> None:
        await self._inner.close()


async def fill(cluster: EmbeddedVolumeCluster) -> None:
    """Create claims and volumes of every kind."""
    await cluster.storage_class("now", SIMULATED, allowVolumeExpansion=True)
    await cluster.volume("one", "1Gi")
    await cluster.volume("two", "2Gi")
    await cluster.volume("temporary", hostPath={"path": "/tmp/x"}, persistentVolumeReclaimPolicy="Delete")
    await cluster.claim("a")
    await cluster.claim("b", "2Gi")
    await cluster.claim("c", storageClassName="now")
    await cluster.claim("d", volumeName="temporary")


async def change(cluster: EmbeddedVolumeCluster) -> None:
    """Expand one claim and delete another."""
    await cluster.merge(CLAIMS, "c", {"spec": {"resources": {"requests": {"storage": "3Gi"}}}})
    await cluster.client.delete(CLAIMS, "d")


async def final_state() -> dict[str, Any]:
    async with embedded_volume_cluster() as cluster:
        await fill(cluster)
        await settle()
        await change(cluster)
        await settle()
        return await cluster.seen()


async def run_controllers(cluster: EmbeddedVolumeCluster, transport: InterruptedTransport, seconds: float) -> None:
    client = Client(transport)
    async with cluster.controllers(transport), provisioner(client, clock=clock):
        await asyncio.sleep(seconds)


@pytest.mark.parametrize("max_writes", [1, 2, 3, 4, 5, 7, 9, 12, 16, 20])
async def test_controllers_that_stop_after_any_write_reach_the_same_final_state(
    max_writes: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    cluster = EmbeddedVolumeCluster()
    await cluster.client.create(Unstructured(NODE))
    await fill(cluster)
    await run_controllers(cluster, InterruptedTransport(cluster, max_writes=max_writes), 5)
    await run_controllers(cluster, InterruptedTransport(cluster), 30)
    await change(cluster)
    await run_controllers(cluster, InterruptedTransport(cluster, max_writes=max_writes), 5)
    await run_controllers(cluster, InterruptedTransport(cluster), 30)

    assert await cluster.seen() == await final_state()


@pytest.mark.parametrize("seed", range(4))
async def test_lost_responses_and_conflicts_do_not_change_the_final_state(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    cluster = EmbeddedVolumeCluster()
    await cluster.client.create(Unstructured(NODE))
    await fill(cluster)
    await run_controllers(cluster, InterruptedTransport(cluster, seed=seed), 900)
    await change(cluster)
    await run_controllers(cluster, InterruptedTransport(cluster, seed=seed), 900)

    assert await cluster.seen() == await final_state()


async def test_claims_in_the_desired_state_cause_no_write_not_even_after_a_restart() -> None:
    cluster = EmbeddedVolumeCluster()
    await cluster.client.create(Unstructured(NODE))
    await fill(cluster)
    await run_controllers(cluster, InterruptedTransport(cluster), 30)
    again = InterruptedTransport(cluster)
    await run_controllers(cluster, again, 30)

    assert again.writes == []


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
