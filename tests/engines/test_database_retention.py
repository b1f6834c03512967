"""Backups of real PostgreSQL in an S3-compatible store: retention."""

from __future__ import annotations

from datetime import timedelta

import pytest

from buckets import Bucket, running_bucket
from database_backups import back_up, wait_for_backup
from konverge_operators.database.archive.base_backups import find_backups
from konverge_operators.database.backups.api import BackupPhase, DatabaseBackup
from running_databases import NAME, RunningDatabase, running_database

pytestmark = [pytest.mark.engines, pytest.mark.real_time(limit=900), pytest.mark.plain_loop]


def spec(bucket: Bucket) -> dict[str, object]:
    backup = {"enabled": True, "destination": {"s3": bucket.spec}}
    return {"replicas": 1, "synchronous": "off", "backup": backup}


async def test_retention_deletes_data_and_log_but_never_the_last_good_backup() -> None:
    """Backups that have become old: the objects and their data go together."""
    with running_bucket() as bucket:
        async with running_database(bucket.secret, **spec(bucket)) as database:
            await database.wait_for_members(1)
            for name in ("one", "two", "three"):
                backup = await back_up(database.client, NAME, name)
                assert backup.status.phase is BackupPhase.SUCCEEDED, backup.status.message
            for age, name in ((30, "one"), (20, "two"), (10, "three")):
                await _age(database, name, timedelta(days=age))
            await _wait_until_gone(database, "one", "two")
            assert [one.name for one in find_backups(bucket.store, NAME)] == ["three"]
            assert (await wait_for_backup(database.client, "three")).status.phase is BackupPhase.SUCCEEDED


async def _age(database: RunningDatabase, name: str, age: timedelta) -> None:
    found = await database.client.get(DatabaseBackup, name)
    assert found.status.completed is not None
    change = {"status": {"completed": (found.status.completed - age).isoformat()}}
    await database.client.patch(DatabaseBackup, name, change, subresource="status")


async def _wait_until_gone(database: RunningDatabase, *names: str) -> None:
    for name in names:
        await database.client.wait_for(DatabaseBackup, name, lambda one: one is None, timeout=180.0)
