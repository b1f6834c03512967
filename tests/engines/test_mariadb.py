"""MariaDB with Galera under faults: 20 killed primaries, all members killed at once, a lost quorum. Minutes."""

from __future__ import annotations

import asyncio
import time
from signal import SIGCONT, SIGSTOP

import pytest

from konverge.k8s.core.v1 import Pod
from konverge_operators.database.api import Phase
from mariadb_load import query
from running_mariadb import MISSING, RunningMariaDB, running_mariadb

pytestmark = [
    pytest.mark.engines,
    pytest.mark.real_time(limit=3000),
    pytest.mark.plain_loop,
    pytest.mark.skipif(bool(MISSING), reason="needs MariaDB: apt-get install mariadb-server galera-4 rsync"),
]


async def test_twenty_killed_primaries_lose_no_acknowledged_write() -> None:
    async with running_mariadb() as database:
        await database.wait_for_members(3)
        await database.connect()
        async with database.clients():
            for _ in range(20):
                async with database.outage("the primary is killed"):
                    await database.kill((await database.record()).primary)
                await database.wait_for_members(3)
        database.check_outages()


async def test_all_members_killed_at_once_recover_alone_also_without_the_operator() -> None:
    async with running_mariadb() as database:
        await database.wait_for_members(3)
        await database.connect()
        async with database.clients():
            for _ in range(10):
                async with database.outage("all members are killed"):
                    await database.kill_all()
                await database.wait_for_members(3)
            await database.stop_operator()
            for _ in range(10):
                async with database.outage("all members are killed, without the operator"):
                    await database.kill_all()
                await until_all_serve(database)
            await database.start_operator()
            await database.wait_for_members(3)
        database.check_outages()


async def test_the_third_member_refuses_writes_while_two_are_frozen() -> None:
    async with running_mariadb() as database:
        await database.wait_for_members(3)
        await database.connect()
        async with database.clients():
            primary = (await database.record()).primary
            others = [pod for pod in await database.client.list(Pod) if pod.name != primary]
            for pod in others:
                send(database, pod.name, SIGSTOP)
            await database.wait(lambda one: one.status.phase is Phase.DEGRADED and "quorum" in one.status.message)
            address = database.addresses_of(await database.client.list(Pod))[primary]
            code, _, refused = await query(address, database.load.login, "INSERT INTO writes VALUES (-2, -2);")
            assert code != 0, refused
            started = time.monotonic()
            for pod in others:
                send(database, pod.name, SIGCONT)
            await database.load.progress()
            print(f"two of three members were frozen: writes {time.monotonic() - started:.1f} s after their return")
            await database.wait_for_members(3)


async def test_what_users_ask_for_loses_no_write() -> None:
    """A new password, a switchover, a hibernation and a changed parameter, each under load."""
    async with running_mariadb() as database:
        await database.wait_for_members(3)
        await database.connect()
        async with database.clients():
            await database.annotate("example.com/rotate-password", "1")
            await database.wait(lambda one: one.status.rotation.replaced == "app")
            database.load.login = await database.login()
            assert database.load.login.user == "app_alternate"
            before = await database.primary()
            await database.annotate("example.com/switchover", "any")
            await database.wait(lambda one: one.status.primary not in ("", before))
            await database.wait_for_members(3)
            await database.edit(hibernate=True)
            await database.wait(lambda one: one.status.phase is Phase.HIBERNATED)
            await database.edit(hibernate=False)
            await database.wait_for_members(3)
            await database.edit(parameters={"max_connections": "77"})
            await database.wait(lambda one: one.status.phase is Phase.UPDATING)
            await database.wait_for_members(3)


def send(database: RunningMariaDB, member: str, signal: int) -> None:
    """Send a signal to all processes of a member."""
    database.cluster.process_pod(member).containers["database"].send_signal(signal, all_processes=True)


async def until_all_serve(database: RunningMariaDB) -> None:
    """Wait until all members serve, by their pods: nobody keeps the status."""
    async with asyncio.timeout(180):
        while not all(is_ready(pod) for pod in await database.client.list(Pod)):
            await asyncio.sleep(0.2)


def is_ready(pod: Pod) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ())
