"""A Database on process nodes: PostgreSQL with Patroni, run by its operator, under load and a killed leader."""

from __future__ import annotations

import pytest

from running_databases import NAME, running_database

pytestmark = [pytest.mark.engines, pytest.mark.real_time(limit=400), pytest.mark.plain_loop]


async def test_a_database_survives_its_leader_and_scales_in_without_losing_a_write() -> None:
    async with running_database() as database:
        first = (await database.wait_for_members(3)).status.primary
        await database.connect()
        async with database.clients():
            async with database.outage(f"{first} killed"):
                await database.kill_for_long(first)
                await database.wait(lambda one: one.status.primary not in ("", first))
            await database.faults.unblock_api_server(database.key(first))
            await database.wait_for_members(3)
            await database.client.scale("databases.example.com", NAME, 2)
            await database.wait_for_members(2)
        assert len({one.member for one in database.prober.probes}) >= 2
