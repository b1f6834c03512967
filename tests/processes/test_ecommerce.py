"""The sample of the EcommerceApp operator for process nodes: two real tiers and a real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

import konverge_operators.ecommerce
from konverge.client import is_deployment_complete
from konverge.k8s.apps.v1 import Deployment
from konverge.objects import from_wire
from konverge_operators.ecommerce.api import EcommerceApp, Phase
from konverge_operators.ecommerce.local_images import local_images
from konverge_operators.ecommerce.operator import new_operator
from process_clusters import LIMIT, ProcessCluster, process_cluster
from process_operators import operating_in

pytestmark = [pytest.mark.processes, pytest.mark.real_time, pytest.mark.plain_loop]

SAMPLE = Path(konverge_operators.ecommerce.__file__).parent / "samples" / "process_nodes" / "ecommerce-app.yaml"


@asynccontextmanager
async def running_shop() -> AsyncGenerator[ProcessCluster]:
    """Run the operator and its sample on a cluster with process nodes."""
    async with process_cluster(*local_images()) as cluster, operating_in(cluster, new_operator()):
        await cluster.client.create(from_wire(EcommerceApp, yaml.safe_load(SAMPLE.read_text())))
        await until_running(cluster)
        yield cluster


async def until_running(cluster: ProcessCluster) -> None:
    def runs(app: Any) -> bool:
        return app is not None and app.status.phase is Phase.RUNNING

    await cluster.client.wait_for(EcommerceApp, "shop", runs, timeout=LIMIT)


async def get(host: str) -> str:
    """Send a request through the frontend's Service; return the body, or what failed."""
    try:
        async with asyncio.timeout(LIMIT):
            reader, writer = await asyncio.open_connection(host, 8080)
            try:
                writer.write(b"GET / HTTP/1.0\r\n\r\n")
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
                return body.decode() if b" 200 " in head.partition(b"\r\n")[0] else f"bad response: {head!r} {body!r}"
            finally:
                writer.close()
    except OSError as error:
        return f"failed: {error!r}"


async def backend_pods(cluster: ProcessCluster) -> set[str]:
    pods = await cluster.client.list("pods", namespace=cluster.namespace)
    return {one.name for one in pods if one.name.startswith("shop-backend-")}


async def test_rolling_the_backend_of_a_shop_loses_no_request() -> None:
    async with running_shop() as cluster:
        host = str((await cluster.client.get("services", "shop-frontend"))["spec"]["clusterIP"])
        (before,) = await backend_pods(cluster)
        await cluster.until_async(lambda: status_of(host), "order")
        responses: list[str] = []
        done = asyncio.Event()

        async def send() -> None:
            while not done.is_set():
                responses.append(await get(host))

        async with asyncio.TaskGroup() as clients:
            for _ in range(2):
                clients.create_task(send())
            try:
                change = {"spec": {"backend": {"image": "shop-backend:v2"}}}
                await cluster.client.patch(EcommerceApp, "shop", change)
                await cluster.client.wait_for(Deployment, "shop-backend", has_new_image, timeout=LIMIT)
                await cluster.client.wait_for(Deployment, "shop-backend", is_deployment_complete(), timeout=LIMIT)
                await cluster.wait_until_gone(before)
            finally:
                done.set()

        (after,) = await backend_pods(cluster)
        assert {one.partition(", ")[2] for one in responses} == {f"accepted by {before}", f"accepted by {after}"}
        numbers = [int(one.partition(",")[0].removeprefix("order ")) for one in responses]
        query = 'PGPASSWORD=$POSTGRES_PASSWORD psql -U $POSTGRES_USER -tAc "SELECT number FROM orders" $POSTGRES_DB'
        stored = await cluster.execute("shop-database-0", "sh", "-c", query, container="database")
        assert len(set(numbers)) == len(numbers)
        assert set(numbers) <= set(map(int, stored.split()))
        await until_running(cluster)


async def status_of(host: str) -> str:
    return (await get(host)).partition(" ")[0]


def has_new_image(deployment: Any) -> bool:
    return deployment is not None and deployment.spec.template.spec.containers[0].image == "shop-backend:v2"
