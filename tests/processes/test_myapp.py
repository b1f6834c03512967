"""The sample of the MyApp operator for process nodes: a real program with a real PostgreSQL and a real redis-server."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
import yaml

from konverge.client import is_deleted
from konverge.k8s.apps.v1 import Deployment
from konverge.objects import from_wire
from konverge_cluster.processes import LocalImages
from konverge_operators.database.operator import new_operator as database_operator
from konverge_operators.database.postgresql.engine import PostgreSQL
from konverge_operators.myapp.api import MyApp, Phase
from konverge_operators.myapp.dependents import DATABASE
from konverge_operators.myapp.operator import new_operator
from konverge_operators.redis.operator import new_operator as redis_operator
from my_apps import SAMPLES
from process_clusters import LIMIT, ProcessCluster, process_cluster
from process_operators import operating_in

pytestmark = [pytest.mark.processes, pytest.mark.real_time, pytest.mark.plain_loop]


def notes(name: str, **spec: Any) -> MyApp:
    """Return the sample under a name, with some fields of its spec changed."""
    document = yaml.safe_load((SAMPLES / "process_nodes" / "notes.yaml").read_text())
    document["metadata"]["name"] = name
    document["spec"] |= spec
    return from_wire(MyApp, document)


async def until_running(cluster: ProcessCluster, name: str) -> None:
    def runs(app: Any) -> bool:
        return app is not None and app.status.phase is Phase.RUNNING

    await cluster.client.wait_for(MyApp, name, runs, timeout=2 * LIMIT)


async def send(cluster: ProcessCluster, app: str, method: str, path: str, body: str = "") -> str:
    """Send a request through the Service of an application; return the body of the response, or what failed."""
    host = str((await cluster.client.get("services", app))["spec"]["clusterIP"])
    request = f"{method} /{path} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    try:
        async with asyncio.timeout(LIMIT):
            reader, writer = await asyncio.open_connection(host, 8080)
            try:
                writer.write(request.encode())
                return (await reader.read()).partition(b"\r\n\r\n")[2].decode()
            finally:
                writer.close()
    except OSError as error:
        return f"failed: {error!r}"


async def test_an_application_with_a_real_database_and_a_real_cache() -> None:
    parts = (database_operator([PostgreSQL()]), redis_operator(), new_operator())
    async with process_cluster(*LocalImages.of(*parts).images) as cluster, AsyncExitStack() as database:
        await database.enter_async_context(operating_in(cluster, parts[0]))
        async with operating_in(cluster, parts[1]), operating_in(cluster, parts[2]):
            await cluster.client.create(notes("notes"))
            await until_running(cluster, "notes")
            await cluster.until_async(lambda: send(cluster, "notes", "PUT", "hello", "good morning"), "stored")
            assert await send(cluster, "notes", "GET", "hello") == "good morning (database)"
            assert await send(cluster, "notes", "GET", "hello") == "good morning (cache)"

            await the_database_is_taken_over(cluster)

            before = await cluster.client.get(Deployment, "second")
            await database.aclose()  # its operator is stopped
            assert await send(cluster, "second", "PUT", "hello", "good evening") == "stored"
            assert await send(cluster, "second", "GET", "hello") == "good evening (database)"
            assert await send(cluster, "second", "GET", "hello") == "good evening (cache)"
            after = await cluster.client.get(Deployment, "second")
            assert after.metadata.generation == before.metadata.generation
            await until_running(cluster, "second")


async def the_database_is_taken_over(cluster: ProcessCluster) -> None:
    """Delete the first application, and give its database to a second one, which has the rows and a new cache."""
    first = await cluster.client.get(DATABASE, "notes-database")
    await cluster.client.delete(MyApp, "notes")
    await cluster.client.wait_for(MyApp, "notes", is_deleted(), timeout=LIMIT)
    await cluster.client.create(notes("second", database={"existing": "notes-database"}))
    await until_running(cluster, "second")
    await cluster.until_async(lambda: send(cluster, "second", "GET", "hello"), "good morning (database)")
    assert (await cluster.client.get(DATABASE, "notes-database")).uid == first.uid
