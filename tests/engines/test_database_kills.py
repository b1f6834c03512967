"""Killed members of a Database under load: the leader, many times, and all members at once.

`KONVERGE_LEADER_KILLS` and `KONVERGE_TOTAL_KILLS` set how often, 50 and 10 by default.
"""

from __future__ import annotations

import asyncio
import os

import pytest

from konverge_operators.database.postgresql.configuration import TTL
from running_databases import RunningDatabase, running_database

pytestmark = [pytest.mark.engines, pytest.mark.real_time(limit=7200), pytest.mark.plain_loop]

LEADER_KILLS = int(os.environ.get("KONVERGE_LEADER_KILLS", "50"))
TOTAL_KILLS = int(os.environ.get("KONVERGE_TOTAL_KILLS", "10"))


async def test_no_acknowledged_write_is_lost_when_leaders_are_killed() -> None:
    async with running_database() as database:
        await database.wait_for_members(3)
        await database.connect()
        async with database.clients():
            for number in range(LEADER_KILLS):
                await kill_leader(database, for_long=number % 2 == 0)
                await database.wait_for_members(3)
        database.check_outages()


async def kill_leader(database: RunningDatabase, *, for_long: bool) -> None:
    """Kill the leader; every other time it stays away until another one leads."""
    leader = await database.primary()
    kind = f"{leader} killed" + (" for long" if for_long else "")
    async with database.outage(kind):
        if not for_long:
            await database.kill(leader)
            return
        await database.kill_for_long(leader)
        await database.wait(lambda one: one.status.primary not in ("", leader))
    await database.faults.unblock_api_server(database.key(leader))


async def test_a_leader_that_is_lost_before_it_has_a_synchronous_replica_has_no_successor() -> None:
    """Nobody else is known to have every commit. The database waits for that leader, and says so."""
    async with running_database() as database:
        first = (await database.wait_for_members(3)).status.primary
        await database.connect()
        async with database.clients():
            await database.kill_for_long(first)
            while (second := await database.lock_owner()) == first:
                await asyncio.sleep(0.05)
            await database.kill_for_long(second)
            await asyncio.sleep(2 * TTL)
            assert (await database.get()).status.primary == ""
            await database.each(database.faults.unblock_api_server)
            await database.wait_for_members(3)
            print(f"{first} and {second} were lost, {await database.primary()} leads", flush=True)
            assert await database.primary() in (first, second)


@pytest.mark.parametrize("operator", ["running", "stopped"])
async def test_all_members_killed_at_once_come_back_with_every_write(operator: str) -> None:
    async with running_database() as database:
        await database.wait_for_members(3)
        await database.connect()
        async with database.clients():
            for _ in range(TOTAL_KILLS):
                if operator == "stopped":
                    await database.stop_operator()
                async with database.outage(f"all killed, operator {operator}"):
                    await database.kill_all()
                if operator == "stopped":
                    await database.start_operator()
                await database.wait_for_members(3)
        database.check_outages()
