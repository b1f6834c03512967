"""MyApp and EcommerceApp with a real MariaDB: the samples for process nodes. Half a minute each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

import konverge_operators.ecommerce
import konverge_operators.myapp
from konverge import CustomResource
from konverge.k8s.apps.v1 import StatefulSet
from konverge.manager import Operator
from konverge.objects import from_wire
from konverge_cluster.processes import LocalImages
from konverge_operators.database.api import Database
from konverge_operators.database.mariadb.engine import MariaDB
from konverge_operators.database.operator import new_operator as database_operator
from konverge_operators.ecommerce.api import EcommerceApp
from konverge_operators.ecommerce.operator import new_operator as ecommerce_operator
from konverge_operators.myapp.api import MyApp
from konverge_operators.myapp.operator import new_operator as myapp_operator
from konverge_operators.redis.operator import new_operator as redis_operator
from process_clusters import ProcessCluster, process_cluster
from process_operators import operating_in
from running_mariadb import MISSING

pytestmark = [
    pytest.mark.engines,
    pytest.mark.real_time(limit=300),
    pytest.mark.plain_loop,
    pytest.mark.skipif(bool(MISSING), reason="needs MariaDB: apt-get install mariadb-server galera-4 rsync"),
]
LIMIT = 90.0
ODD = "it's 'quoted' \\ and ünicode; DROP TABLE notes"


def sample(package: Any, kind: type[Any]) -> Any:
    file = Path(package.__file__).parent / "samples" / "process_nodes" / "mariadb.yaml"
    return from_wire(kind, yaml.safe_load(file.read_text()))


async def until_running(cluster: ProcessCluster, kind: type[CustomResource[Any, Any]], name: str) -> None:
    def runs(app: Any) -> bool:
        return app is not None and app.status.phase == "Running"

    await cluster.client.wait_for(kind, name, runs, timeout=LIMIT)


async def send(cluster: ProcessCluster, service: str, method: str = "GET", path: str = "", body: str = "") -> str:
    """Send a request through a Service; return the body of the response, or what failed."""
    host = str((await cluster.client.get("services", service))["spec"]["clusterIP"])
    content = body.encode()
    head = f"{method} /{path} HTTP/1.0\r\nContent-Length: {len(content)}\r\n\r\n"
    try:
        async with asyncio.timeout(LIMIT):
            reader, writer = await asyncio.open_connection(host, 8080)
            try:
                writer.write(head.encode() + content)
                return (await reader.read()).partition(b"\r\n\r\n")[2].decode()
            finally:
                writer.close()
    except OSError as error:
        return f"failed: {error!r}"


async def test_an_application_with_a_mariadb_and_a_cache() -> None:
    parts = (database_operator([MariaDB()]), redis_operator(), myapp_operator())
    operator = Operator.combine("all", *parts)
    async with process_cluster(*LocalImages.of(*parts).images) as cluster, operating_in(cluster, operator):
        await cluster.client.create(sample(konverge_operators.myapp, MyApp))
        await until_running(cluster, MyApp, "notes")
        assert (await cluster.client.get(Database, "notes-database")).spec.engine == "mariadb"
        await cluster.until_async(lambda: send(cluster, "notes", "PUT", "hello", ODD), "stored")
        assert await send(cluster, "notes", "GET", "hello") == f"{ODD} (database)"
        assert await send(cluster, "notes", "GET", "hello") == f"{ODD} (cache)"


@pytest.mark.parametrize("kind", [Database, StatefulSet])
async def test_a_shop_with_a_mariadb(kind: type[Any]) -> None:
    """With the operator of Database the shop has one, otherwise a plain StatefulSet."""
    shop = ecommerce_operator()
    parts = (shop, database_operator([MariaDB()])) if kind is Database else (shop,)
    operator = Operator.combine("all", *parts)
    async with process_cluster(*LocalImages.of(*parts).images) as cluster, operating_in(cluster, operator):
        await cluster.client.create(sample(konverge_operators.ecommerce, EcommerceApp))
        await until_running(cluster, EcommerceApp, "shop")
        app = await cluster.client.get(EcommerceApp, "shop")
        assert app.status.database_kind == kind.__name__
        await cluster.until_async(lambda: order_of(cluster), "order 1")
        assert await order_of(cluster) == "order 2"


async def order_of(cluster: ProcessCluster) -> str:
    return (await send(cluster, "shop-frontend")).partition(",")[0]
