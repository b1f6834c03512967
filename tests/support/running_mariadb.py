"""A Database of real MariaDB members on process nodes, its clients, and what tests break and measure."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from konverge import ObjectMeta
from konverge.k8s.core.v1 import ConfigMap, Pod, Service
from konverge.objects import AnyObject
from konverge_operators.database.api import Database, DatabaseSpec, Phase
from konverge_operators.database.mariadb.engine import MariaDB
from konverge_operators.database.mariadb.local_images import local_images, missing_programs
from konverge_operators.database.mariadb.member.api_server import record_name
from konverge_operators.database.mariadb.member.decisions import Record
from konverge_operators.database.operator import new_operator
from mariadb_load import MariaDBLoad
from process_clusters import process_cluster
from process_operators import operating_in
from running_databases import NAME, RunningDatabase

__all__ = ["MISSING", "RunningMariaDB", "running_mariadb"]

MISSING = missing_programs()
"""What this machine lacks: tests of MariaDB are skipped then."""


class RunningMariaDB(RunningDatabase):
    """The Database in a cluster, and what a test asks of it."""

    async def start_operator(self) -> None:
        await self._operator.enter_async_context(operating_in(self.cluster, new_operator([MariaDB()])))

    async def create(self, **spec: Any) -> None:
        wanted = DatabaseSpec(**{"version": "10.11", "engine": "mariadb", "replicas": 3, **spec})
        await self.client.create(Database(metadata=ObjectMeta(name=NAME, namespace="test"), spec=wanted))

    async def record(self) -> Record:
        found = Record.parse((await self.client.get(ConfigMap, record_name(NAME))).data or {})
        assert found is not None
        return found

    async def wait_for_members(self, count: int) -> Database:
        return await self.wait(
            lambda one: (
                one.status.phase is Phase.READY and one.status.ready_replicas == len(one.status.members) == count
            )
        )

    def addresses_of(self, pods: Iterable[Pod]) -> dict[str, str]:
        return {pod.name: pod.status.pod_ip or "" for pod in pods}

    async def connect(self) -> None:
        host = str((await self.client.get(Service, f"{NAME}-rw")).spec.cluster_ip)
        self.load = MariaDBLoad(host, await self.login())
        await self.load.prepare()

    @asynccontextmanager
    async def clients(self) -> AsyncGenerator[None]:
        """Write through the Service until the block ends; then check that every acknowledged write is there."""
        async with self.load.running():
            await self.load.progress()
            yield
            await self.load.progress()
        assert await self.load.missing() == []


@asynccontextmanager
async def running_mariadb(*objects: AnyObject, **spec: Any) -> AsyncGenerator[RunningMariaDB]:
    """Run a cluster and the operator, create objects and a Database; containers restart at once."""
    async with process_cluster(*local_images(), crash_backoff=0.0) as cluster:
        database = RunningMariaDB(cluster)
        await database.start_operator()
        try:
            for one in objects:
                await database.client.create(one)
            await database.create(**spec)
            yield database
        finally:
            await database.stop_operator()
