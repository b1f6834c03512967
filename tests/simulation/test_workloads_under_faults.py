"""Workload controllers with an unreliable connection to the server: they reach the same final state.

Requests are refused, fail, or are processed without a response; streams break. One seed decides all of it.
"""

from __future__ import annotations

import asyncio
import logging

import pytest

from konverge.objects import Unstructured
from konverge.testing import settle
from workload_clusters import NODE, EmbeddedWorkloadCluster, seen
from workload_scenarios import deployment, follow, image, job, service
from workload_transports import UnreliableTransport


@pytest.mark.parametrize("seed", range(3))
async def test_an_unreliable_connection_delays_the_final_state_but_does_not_change_it(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, logger="konverge")
    cluster = EmbeddedWorkloadCluster()
    await cluster.client.create(Unstructured(NODE))
    transport = UnreliableTransport(cluster, seed)
    async with cluster.controllers(transport):
        await cluster.create(deployment(3))
        await cluster.create(job(completions=4, parallelism=2))
        await cluster.create(service())
        for step in range(6):
            await asyncio.sleep(10)
            await cluster.start()
            await cluster.end("Succeeded", labels="kind=work", count=1)
            await cluster.remove_deleted()
            if step == 2:
                await cluster.merge("deployments.apps", "web", image("i:2"))
        transport.faulty = False
        for _ in range(4):
            await asyncio.sleep(330)
            await settle()
            await follow(cluster)
            await cluster.end("Succeeded", labels="kind=work")
    pods = await cluster.pods("app=web")
    assert {pod.spec.containers[0].image for pod in pods} == {"i:2"}
    assert len(pods) == 3
    (web,) = (await seen(cluster, "deployments.apps"))["deployments.apps"]
    status = web["status"]
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (3, 3, 3)
    work = (await cluster.get("jobs.batch", "work"))["status"]
    assert work["succeeded"] == 4
    assert [one["type"] for one in work["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert work["uncountedTerminatedPods"] == {}
    assert len(await cluster.pods("kind=work")) == 4
    slices = await cluster.all("endpointslices.discovery.k8s.io", "kubernetes.io/service-name=web")
    assert sorted(address for one in slices for end in one["endpoints"] for address in end["addresses"]) == sorted(
        pod.status.pod_ip or "" for pod in pods
    )
