"""Workload controllers with an unreliable connection to the server: they reach the same final state.

Requests are refused, fail, or are processed without a response; streams break. One seed decides all of it.
"""

from __future__ import annotations

import asyncio
import logging
from random import Random

import pytest

from konverge.client import InProcessTransport
from konverge.errors import TransportError
from konverge.objects import Unstructured
from konverge.testing import settle
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import status_response
from konverge.wire.messages import BufferedResponse, Request, Response
from workload_clusters import NODE, EmbeddedWorkloadCluster, seen
from workload_scenarios import deployment, follow, image, job, service

SHARE = 0.25


class UnreliableTransport:
    """A transport on which a quarter of the requests fail, until `faulty` is False."""

    def __init__(self, cluster: EmbeddedWorkloadCluster, seed: int) -> None:
        self._inner = FaultTransport(InProcessTransport(cluster.server.handle))
        self._random = Random(seed)
        self.faulty = True

    async def send(self, request: Request) -> Response:
        if not self.faulty or self._random.random() > SHARE:
            return await self._inner.send(request)
        fault_type = self._random.choice(["refused", "lost", "busy", "broken", "conflict", "cut"])
        if fault_type == "refused":
            raise TransportError("refused", sent=False)
        if fault_type == "cut":
            self._inner.reset_streams()
        if fault_type == "lost" and not request.stream:
            await (await self._inner.send(request)).read()
            raise TransportError("the response was lost")
        codes = {"busy": (429, "TooManyRequests"), "broken": (500, "InternalError"), "conflict": (409, "Conflict")}
        if fault_type in codes and request.method != "GET":
            code, reason = codes[fault_type]
            fault = status_response(code, reason=reason)
            return BufferedResponse(code, fault.body, fault.headers)
        return await self._inner.send(request)

    async def close(self) -> None:
        await self._inner.close()


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
