"""The numbers of transactions on a real MariaDB: all members have the same ones, which the archived log depends on."""

from __future__ import annotations

import asyncio

import pytest

from konverge.k8s.core.v1 import Pod, Service
from mariadb_load import query
from running_databases import NAME
from running_mariadb import MISSING, RunningMariaDB, running_mariadb

pytestmark = [
    pytest.mark.engines,
    pytest.mark.real_time(limit=300),
    pytest.mark.plain_loop,
    pytest.mark.skipif(bool(MISSING), reason="needs MariaDB: apt-get install mariadb-server galera-4 rsync"),
]

TABLE = "CREATE TABLE numbers (number int PRIMARY KEY);"
TRIGGER = "CREATE TRIGGER doubled BEFORE INSERT ON numbers FOR EACH ROW SET NEW.number = 2 * NEW.number;"
INSERT = "INSERT INTO numbers VALUES (21);"
POSITION = "SET SESSION wsrep_sync_wait = 1; SELECT number FROM numbers; SELECT @@gtid_binlog_pos;"


async def execute(database: RunningMariaDB, statement: str) -> None:
    """Execute a statement as soon as there is a primary."""
    host = str((await database.client.get(Service, f"{NAME}-rw")).spec.cluster_ip)
    async with asyncio.timeout(120):
        while (await query(host, await database.login(), statement))[0]:
            await asyncio.sleep(0.2)


async def test_members_count_alike_after_a_failed_statement_and_a_complete_outage() -> None:
    """A statement that fails uses up a number, which only the members that join afterwards know."""
    async with running_mariadb() as database:
        await database.wait_for_members(3)
        await execute(database, TABLE)
        await execute(database, TRIGGER)
        host, login = str((await database.client.get(Service, f"{NAME}-rw")).spec.cluster_ip), await database.login()
        code, _, error = await query(host, login, TABLE)
        assert (code != 0, "already exists" in error) == (True, True), error
        await database.kill_all()
        await execute(database, INSERT)
        await database.wait_for_members(3)
        found = [
            await query(one, login, POSITION) for one in database.addresses_of(await database.client.list(Pod)).values()
        ]
        numbers = {next(one for one in rows[1].split(",") if one.startswith("1-")) for _, rows, _ in found}
        assert ([rows[0] for _, rows, _ in found], len(numbers)) == (["42"] * 3, 1), found
