"""A backup of real PostgreSQL on process nodes, and a database that is restored from it to a time."""

from __future__ import annotations

import pytest

from database_backups import Rows, archive_log, back_up, restore
from konverge_operators.database.api import Phase
from konverge_operators.database.backups.api import BackupPhase
from running_databases import NAME, running_database

pytestmark = [pytest.mark.processes, pytest.mark.real_time(limit=400), pytest.mark.plain_loop]


async def test_a_backup_is_verified_and_restored_to_a_time() -> None:
    """The rows after the time are not there, those before are, and the application logs in with a new password."""
    async with running_database(replicas=1, synchronous="off", backup={"enabled": True}) as database:
        await database.wait_for_members(1)
        rows = Rows(database.client, NAME)
        await rows.write(1)
        backup = await back_up(database.client, NAME, "first")
        assert backup.status.phase is BackupPhase.SUCCEEDED, backup.status.message
        assert backup.status.size > 1_000_000
        time = await rows.write(2)
        await rows.write(3)
        await archive_log(database.client, f"{NAME}-0")
        recovery = {"fromBackup": "first", "targetTime": time.isoformat()}
        restored = await restore(database.client, "copy", recovery)
        assert restored.status.phase is Phase.READY, restored.status.message
        assert await Rows(database.client, "copy").read() == [1, 2]
        assert await rows.read() == [1, 2, 3]
