"""Changes of a Database under load: scaling, a minor update, a switchover, a new password, hibernation."""

from __future__ import annotations

import pytest

from konverge.k8s.core.v1 import Pod
from konverge_operators.database.api import Phase
from konverge_operators.database.names import ROTATE_PASSWORD, SWITCHOVER
from running_databases import NAME, RunningDatabase, running_database

pytestmark = [pytest.mark.engines, pytest.mark.real_time(limit=1800), pytest.mark.plain_loop]


async def versions_of(database: RunningDatabase) -> set[str]:
    """Return what the members themselves say that they run."""
    found = set()
    for pod in await database.client.list(Pod):
        async with await database.load.login.connect(str(pod.status.pod_ip)) as connection:
            row = await (await connection.execute("SHOW server_version")).fetchone()
            found.add(row[0].split()[0] if row else "")
    return found


async def test_a_database_scales_out_and_in_under_load() -> None:
    """Without synchronous replication, since one member has nobody to wait for; planned changes lose nothing."""
    async with running_database(replicas=1, synchronous="off") as database:
        await database.wait_for_members(1)
        await database.connect()
        async with database.clients():
            async with database.outage("from 1 to 3 members"):
                await database.client.scale("databases.example.com", NAME, 3)
                await database.wait_for_members(3)
            await database.annotate(SWITCHOVER, f"{NAME}-2")
            async with database.outage("switchover to the last member"):
                await database.wait(lambda one: one.status.primary == f"{NAME}-2")
            async with database.outage("from 3 to 2 members, the leader among those that go"):
                await database.client.scale("databases.example.com", NAME, 2)
                await database.wait_for_members(2)
        database.check_outages()


async def test_a_minor_update_under_load_stops_one_member_at_a_time() -> None:
    async with running_database(version="18.4") as database:
        assert (await database.wait_for_members(3)).status.version == "18.4"
        await database.connect()
        assert await versions_of(database) == {"18.4"}
        async with database.clients(), database.outage("from 18.4 to 18.6"):
            await database.edit(version="18.6")
            await database.wait(lambda one: one.status.phase is Phase.READY and one.status.version == "18.6")
        assert await versions_of(database) == {"18.6"}
        database.check_outages()


async def test_sixteen_serves_rotates_its_password_and_hibernates() -> None:
    async with running_database(version="16", replicas=2, synchronous="on") as database:
        await database.wait_for_members(2)
        await database.connect()
        assert await versions_of(database) == {"16.14"}
        async with database.clients():
            await database.annotate(ROTATE_PASSWORD, "1")
            await database.wait(lambda one: one.status.rotation.request == "1")
            await database.load.progress()  # with the old login, which stays valid for a while
        primary = (await database.client.get(Pod, await database.primary())).status.pod_ip
        for login in (database.load.login, await database.login()):
            async with await login.connect(str(primary)) as connection:
                await connection.execute("SELECT")
        await database.edit(hibernate=True)
        await database.wait(lambda one: one.status.phase is Phase.HIBERNATED)
        await database.edit(hibernate=False)
        await database.wait_for_members(2)
        old = database.load.login
        await database.reconnect()
        assert database.load.login.user != old.user
        assert await database.load.missing() == []
