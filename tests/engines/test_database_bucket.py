"""Backups of real PostgreSQL in an S3-compatible store: one that is away and back, a second, damage."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from buckets import Bucket, running_bucket
from database_backups import Rows, archive_log, back_up, restore
from konverge.objects import find_condition
from konverge_operators.database.api import Database, Phase
from konverge_operators.database.archive.base_backups import find_backups
from konverge_operators.database.backups.api import BackupPhase
from running_databases import NAME, RunningDatabase, running_database

pytestmark = [pytest.mark.engines, pytest.mark.real_time(limit=900), pytest.mark.plain_loop]


def spec(bucket: Bucket) -> dict[str, object]:
    backup = {"enabled": True, "destination": {"s3": bucket.spec}}
    return {"replicas": 1, "synchronous": "off", "backup": backup}


def backup_reason(found: Database) -> str:
    condition = find_condition(found.status.conditions, "Backup")
    return condition.reason if condition is not None else ""


async def test_the_log_follows_when_the_store_is_back_a_second_is_restored_and_damage_is_not() -> None:
    with running_bucket() as bucket:
        async with running_database(bucket.secret, **spec(bucket)) as database:
            await database.wait_for_members(1)
            rows = Rows(database.client, NAME)
            await rows.write(1)
            first = await back_up(database.client, NAME, "first")
            assert first.status.phase is BackupPhase.SUCCEEDED, first.status.message
            await _lose_the_store(database, bucket, rows)
            second = await write_until_a_second(rows, 3, 4)
            await rows.write(5)
            await archive_log(database.client, f"{NAME}-0")
            target = {"fromBackup": "first", "targetTime": second.isoformat()}
            copy = await restore(database.client, "copy", target)
            assert copy.status.phase is Phase.READY, copy.status.message
            assert await Rows(database.client, "copy").read() == [1, 2, 3, 4]
            _damage(bucket)
            failed = await restore(database.client, "damaged", target)
            assert (failed.status.phase, "damaged" in failed.status.message) == (Phase.FAILED, True)


async def write_until_a_second(rows: Rows, *numbers: int) -> datetime:
    """Write numbers; return when the next second begins, after it has begun."""
    written = await rows.write(*numbers)
    second = written.replace(microsecond=0) + timedelta(seconds=1)
    await asyncio.sleep((second - written).total_seconds() + 0.1)
    return second


async def _lose_the_store(database: RunningDatabase, bucket: Bucket, rows: Rows) -> None:
    """Write while the store is away; the condition Backup says so, and the log is archived when it is back."""
    bucket.stop()
    await rows.write(2)
    with pytest.raises(TimeoutError):
        await archive_log(database.client, f"{NAME}-0", limit=10.0)
    await database.wait(lambda found: backup_reason(found) == "ArchiveFailing")
    bucket.start()
    await database.wait(lambda found: backup_reason(found) == "Recoverable")


def _damage(bucket: Bucket) -> None:
    """Change a byte of the backup in the store."""
    (backup,) = find_backups(bucket.store, NAME)
    key = backup.parts[0].key
    content = bytearray(bucket.store.get(key))
    content[len(content) // 2] ^= 1
    bucket.store.put(key, bytes(content))
