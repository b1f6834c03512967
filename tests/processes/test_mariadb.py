"""A Database of MariaDB members on process nodes: replication, a killed primary under load, fewer members, a backup."""

from __future__ import annotations

import asyncio

import pytest

from database_backups import back_up
from konverge.k8s.core.v1 import Service
from konverge_operators.database.api import Phase
from konverge_operators.database.backups.api import BackupPhase
from mariadb_backups import MariaDBRows, archive_log, restore_mariadb
from mariadb_load import query
from running_databases import NAME
from running_mariadb import RunningMariaDB, running_mariadb

pytestmark = [pytest.mark.processes, pytest.mark.mariadb, pytest.mark.real_time(limit=400), pytest.mark.plain_loop]


async def test_a_mariadb_survives_its_primary_scales_in_and_is_restored_without_losing_a_write() -> None:
    async with running_mariadb(backup={"enabled": True}) as database:
        ready = await database.wait_for_members(3)
        await database.connect()
        recovery = await back_up_and_write(database)
        reader = str((await database.client.get(Service, f"{NAME}-ro")).spec.cluster_ip)
        code, _, refused = await query(reader, database.load.login, "INSERT INTO writes VALUES (-1, -1);")
        assert (code, "read-only" in refused) == (1, True), refused
        restoring = asyncio.create_task(restore_mariadb(database.client, "copy", recovery))
        async with database.clients():
            await database.kill(ready.status.primary)
            await database.load.progress()
            await database.wait_for_members(3)
            assert (await database.primary()) != ready.status.primary
            await database.client.scale("databases.example.com", NAME, 1)
            await database.wait_for_members(1)
        restored = await restoring
        assert restored.status.phase is Phase.READY, restored.status.message
        assert await MariaDBRows(database.client, "copy").read() == [1, 2]


async def back_up_and_write(database: RunningMariaDB) -> dict[str, str]:
    """Write a row before the backup, one after it, and one after a second; return the recovery to that second."""
    rows = MariaDBRows(database.client, NAME)
    await rows.write(1)
    backup = await back_up(database.client, NAME, "first")
    assert backup.status.phase is BackupPhase.SUCCEEDED, backup.status.message
    time = await rows.write(2)
    await rows.next_second()
    await rows.write(3)
    await archive_log(database.client, await database.primary())
    return {"fromBackup": "first", "targetTime": time.isoformat()}
