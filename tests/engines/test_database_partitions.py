"""Leaders of a Database that cannot be reached, or do not answer, while clients are connected to them."""

from __future__ import annotations

import asyncio
import os

import pytest

from konverge_operators.database.postgresql.configuration import TTL
from running_databases import running_database

pytestmark = [pytest.mark.engines, pytest.mark.real_time(limit=1800), pytest.mark.plain_loop]

AWAY = float(os.environ.get("KONVERGE_AWAY_SECONDS", "60"))


async def test_a_leader_that_is_cut_from_the_api_server_goes_on_alone() -> None:
    """Its lock runs out, but the others see it alive, and it sees them: nobody else leads, and nothing is lost."""
    async with running_database() as database:
        leader = (await database.wait_for_members(3)).status.primary
        await database.connect()
        async with database.clients():
            async with database.outage(f"{leader} cut for {3 * TTL} s"):
                await database.faults.block_api_server(database.key(leader))
                await asyncio.sleep(3 * TTL)
                await database.faults.unblock_api_server(database.key(leader))
            await database.wait_for_members(3)
        assert database.load.errors == []
        database.check_outages()


async def test_a_frozen_leader_that_resumes_accepts_no_write_beside_its_successor() -> None:
    async with running_database() as database:
        leader = (await database.wait_for_members(3)).status.primary
        await database.connect()
        async with database.clients():
            async with database.outage(f"{leader} frozen"):
                await database.faults.freeze(database.key(leader))
                await database.wait(lambda one: one.status.primary not in ("", leader))
            await asyncio.sleep(TTL)
            await database.faults.resume(database.key(leader))
            await database.wait_for_members(3)
        assert len({one.member for one in database.prober.probes}) >= 2
        database.check_outages()


async def test_writes_go_on_while_the_api_server_is_away() -> None:
    """The operator is stopped too, since it has lost its server."""
    async with running_database() as database:
        leader = (await database.wait_for_members(3)).status.primary
        await database.connect()
        async with database.clients():
            await database.stop_operator()
            async with database.outage(f"the API server away for {AWAY:.0f} s"):
                await database.each(database.faults.block_api_server)
                await asyncio.sleep(AWAY)
                await database.each(database.faults.unblock_api_server)
            await database.start_operator()
            found = await database.wait_for_members(3)
        assert found.status.primary == leader
        assert database.load.errors == []
        assert max(database.outages) < TTL
