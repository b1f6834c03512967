"""A Database of MariaDB members on process nodes: replication, a killed primary under load, fewer members."""

from __future__ import annotations

import pytest

from konverge.k8s.core.v1 import Service
from mariadb_load import query
from running_databases import NAME
from running_mariadb import running_mariadb

pytestmark = [pytest.mark.processes, pytest.mark.mariadb, pytest.mark.real_time(limit=400), pytest.mark.plain_loop]


async def test_a_mariadb_survives_its_primary_and_scales_in_without_losing_a_write() -> None:
    async with running_mariadb() as database:
        ready = await database.wait_for_members(3)
        await database.connect()
        reader = str((await database.client.get(Service, f"{NAME}-ro")).spec.cluster_ip)
        code, _, refused = await query(reader, database.load.login, "INSERT INTO writes VALUES (-1, -1);")
        assert (code, "read-only" in refused) == (1, True), refused
        async with database.clients():
            await database.kill(ready.status.primary)
            await database.load.progress()
            await database.wait_for_members(3)
            assert (await database.primary()) != ready.status.primary
            await database.client.scale("databases.example.com", NAME, 1)
            await database.wait_for_members(1)
