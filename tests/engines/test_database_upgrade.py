"""The major upgrade of a Database with pg_upgrade: all rows are there, and a failure ends on the old version."""

from __future__ import annotations

from typing import LiteralString

import pytest

from database_backups import Rows, archive_log, restore
from konverge.k8s.core.v1 import Pod
from konverge_operators.database.api import Phase, Upgrade
from konverge_operators.database.backups.api import BackupPhase, DatabaseBackup
from konverge_operators.database.names import RETRY_UPGRADE
from konverge_operators.database.postgresql.members import PSQL
from running_databases import NAME, RunningDatabase, running_database

pytestmark = [pytest.mark.engines, pytest.mark.real_time(limit=1800), pytest.mark.plain_loop]

DIRECTORIES = "ls -d /var/lib/postgresql/data/pgdata-* | sed s/.*pgdata-// | tr '\\n' ' '"


async def run(database: RunningDatabase, member: str, script: str) -> str:
    result = await database.client.exec(member, ["sh", "-c", script], container="database")
    assert result.exit_code == 0, result.stderr
    return result.stdout.decode().strip()


async def query(database: RunningDatabase, member: str, text: str) -> str:
    """Ask a member as the superuser."""
    return await run(database, member, f'{PSQL} --tuples-only --no-align --command="{text}"')


async def versions_of(database: RunningDatabase) -> set[str]:
    """Return the major versions that the members say that they run."""
    pods = await database.client.list(Pod, labels="app.kubernetes.io/component=member")
    return {(await query(database, pod.name, "SHOW server_version")).partition(".")[0] for pod in pods}


async def execute(database: RunningDatabase, statement: LiteralString) -> None:
    """Execute a statement as the application."""
    async with await database.load.login.connect(database.load.host) as connection:
        await connection.execute(statement)


async def check_rows(database: RunningDatabase, major: str) -> None:
    """Check that all members run a version, that writes go on, and that every acknowledged one is there."""
    assert await versions_of(database) == {major}
    await database.load.progress()
    before = {(one.client, one.number) for one in database.load.acknowledged}  # more are written meanwhile
    assert len(before) > 10
    assert not before & set(await database.load.missing())
    assert await query(database, await database.primary(), "SHOW data_checksums") == "on"


async def check_backups(database: RunningDatabase) -> None:
    """Check that the data of both versions can be restored: each from its own log, which has the same file names."""
    client = database.client
    status = (await database.wait(lambda one: "-after-18-" in one.status.last_backup.name)).status
    found = {one.name: one.status for one in await client.list(DatabaseBackup)}
    assert {one.phase for one in found.values()} == {BackupPhase.SUCCEEDED}, found
    assert status.recoverable_from == found[status.last_backup.name].completed
    await Rows(client, NAME).write(2)
    await archive_log(client, await database.primary())
    before = next(name for name in found if "-before-18-" in name)
    for name, version, backup, rows in (("old", "16", before, [1]), ("new", "18", status.last_backup.name, [1, 2])):
        copy = await restore(client, name, {"fromBackup": backup}, version=version)
        assert copy.status.phase is Phase.READY, copy.status
        assert await Rows(client, name).read() == rows
    await database.wait_for_members(2)


async def test_an_upgrade_that_fails_ends_on_sixteen_and_one_that_is_repaired_on_eighteen_with_all_rows() -> None:
    """A column that is not null in a table, and may be so in one that inherits it, is what version 18 refuses."""
    async with running_database(version="16", replicas=2, synchronous="on", backup={"enabled": True}) as database:
        await database.wait_for_members(2)
        await database.connect()
        await Rows(database.client, NAME).write(1)
        async with database.load.running():
            await execute(database, "CREATE TABLE parent (name text)")
            await execute(database, "CREATE TABLE child () INHERITS (parent)")
            await execute(database, "ALTER TABLE ONLY parent ALTER name SET NOT NULL")
            async with database.outage("an upgrade from 16 to 18 that fails"):
                await database.edit(version="18")
                status = (await database.wait(lambda one: one.status.message.startswith("18 was not reached"))).status
            assert "NOT NULL" in status.upgrade.message, status
            assert "parent" in status.upgrade.message or "child" in status.upgrade.message, status
            assert (status.phase, status.ready_replicas) == (Phase.DEGRADED, 2)
            await check_rows(database, "16")

            await execute(database, "ALTER TABLE child ALTER name SET NOT NULL")
            async with database.outage("an upgrade from 16 to 18"):
                await database.annotate(RETRY_UPGRADE, "1")
                await database.wait(lambda one: one.status.phase is Phase.READY and one.status.version == "18.6")
            await check_rows(database, "18")
        status = (await database.wait_for_members(2)).status
        assert status.upgrade == Upgrade()
        for one in status.members:
            assert await run(database, one.name, DIRECTORIES) == "18"
        await check_backups(database)
