"""Killed members of a Database under load: the leader, many times, and all members at once.

`KONVERGE_LEADER_KILLS` and `KONVERGE_TOTAL_KILLS` set how often, 50 and 10 by default.
"""

from __future__ import annotations

import os

import pytest

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
            await database.faults.kill(database.key(leader))
            return
        await database.kill_for_long(leader)
        await database.wait(lambda one: one.status.primary not in ("", leader))
    await database.faults.unblock_api_server(database.key(leader))


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
                    await database.each(database.faults.kill)
                if operator == "stopped":
                    await database.start_operator()
                await database.wait_for_members(3)
        database.check_outages()
