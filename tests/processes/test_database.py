"""A Database on process nodes: PostgreSQL with Patroni, run by its operator, under load and a killed leader."""

from __future__ import annotations

import pytest

from running_databases import NAME, running_database

pytestmark = [pytest.mark.processes, pytest.mark.real_time(limit=400), pytest.mark.plain_loop]


async def test_a_database_survives_its_leader_and_scales_in_without_losing_a_write() -> None:
    """Any member may lead then, also the killed one, if it is back first. `make engines` makes sure of a failover."""
    async with running_database() as database:
        leader = (await database.wait_for_members(3)).status.primary
        await database.connect()
        async with database.clients():
            await database.kill(leader)
            await database.load.progress()
            await database.wait_for_members(3)
            await database.client.scale("databases.example.com", NAME, 2)
            await database.wait_for_members(2)
