"""A Database on process nodes: PostgreSQL with Patroni, run by its operator, under load and a killed leader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from database_load import Load, Login, Prober
from konverge import ObjectMeta
from konverge.k8s.core.v1 import Pod, Secret, Service
from konverge.objects import Key
from konverge_operators.database.api import Database, DatabaseSpec, Phase
from konverge_operators.database.operator import new_operator
from konverge_operators.database.postgresql.engine import PostgreSQL
from konverge_operators.database.postgresql.local_images import local_images
from process_clusters import ProcessCluster, process_cluster
from process_operators import operating_in

pytestmark = [pytest.mark.engines, pytest.mark.real_time(limit=400), pytest.mark.plain_loop]

NAME = "orders"
LIMIT = 180.0


class RunningDatabase:
    """The Database in a cluster, and what the test asks of it."""

    def __init__(self, cluster: ProcessCluster) -> None:
        self.client = cluster.client
        self._cluster = cluster
        self.addresses: dict[str, str] = {}

    async def wait(self, fact: Callable[[Database], bool]) -> Database:
        def holds(obj: Any) -> bool:
            return obj is not None and fact(obj)

        found = await self.client.wait_for(Database, NAME, holds, timeout=LIMIT)
        assert found is not None
        pods = await self.client.list(Pod)
        self.addresses |= {pod.name: pod.status.pod_ip for pod in pods if pod.status.pod_ip}
        return found

    async def wait_for_members(self, count: int) -> Database:
        """Wait until the database is ready with so many members."""

        def complete(obj: Database) -> bool:
            status = obj.status
            return status.phase is Phase.READY and status.ready_replicas == len(status.members) == count

        return await self.wait(complete)

    async def login(self) -> Login:
        """Return the login of the connection Secret."""
        secret = await self.client.get(Secret, (await self.wait(lambda _: True)).status.connection_secret)
        data = {name: value.decode() for name, value in (secret.data or {}).items()}
        return Login(data["username"], data["password"], data["database"])

    async def host(self) -> str:
        return str((await self.client.get(Service, f"{NAME}-rw")).spec.cluster_ip)

    async def kill(self, member: str) -> None:
        """Kill a member; it restarts when it can reach the API server again, so that another one leads."""
        key = Key(self._cluster.namespace, member)
        await self._cluster.cluster.faults.block_api_server(key)
        await self._cluster.cluster.faults.kill(key)

    async def release(self, member: str) -> None:
        await self._cluster.cluster.faults.unblock_api_server(Key(self._cluster.namespace, member))


async def test_a_database_survives_its_leader_and_scales_in_without_losing_a_write() -> None:
    async with process_cluster(*local_images()) as cluster, operating_in(cluster, new_operator([PostgreSQL()])):
        database = RunningDatabase(cluster)
        spec = DatabaseSpec(version="18", replicas=3, synchronous="strict")
        await cluster.client.create(Database(metadata=ObjectMeta(name=NAME, namespace="test"), spec=spec))
        first = (await database.wait_for_members(3)).status.primary
        login = await database.login()
        load, prober = Load(await database.host(), login), Prober(login, lambda: database.addresses)
        await load.prepare()

        async with load.running(), prober.running(sorted(database.addresses)):
            await load.progress()
            await database.kill(first)
            await database.wait(lambda one: one.status.primary not in ("", first))
            await load.progress()
            await database.release(first)
            await database.wait_for_members(3)
            await load.progress()
            await cluster.client.scale(Database, NAME, 2)
            await database.wait_for_members(2)
            await load.progress()

        assert await load.missing() == []
        assert prober.violations() == []
        assert len({one.member for one in prober.probes}) >= 2
