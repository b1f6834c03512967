"""Backups of real PostgreSQL in an S3-compatible store: the loss of everything else."""

from __future__ import annotations

import time

import pytest

from buckets import Bucket, running_bucket
from database_backups import Rows, archive_log, back_up
from konverge_operators.database.backups.api import BackupPhase
from running_databases import NAME, running_database

pytestmark = [pytest.mark.engines, pytest.mark.real_time(limit=900), pytest.mark.plain_loop]


def spec(bucket: Bucket) -> dict[str, object]:
    backup = {"enabled": True, "destination": {"s3": bucket.spec}}
    return {"replicas": 1, "synchronous": "off", "backup": backup}


async def test_everything_is_lost_but_the_bucket() -> None:
    """The cluster, all claims and all Secrets are gone. What was archived comes back in another cluster."""
    with running_bucket() as bucket:
        async with running_database(bucket.secret, **spec(bucket)) as database:
            await database.wait_for_members(1)
            rows = Rows(database.client, NAME)
            await rows.write(1)
            backup = await back_up(database.client, NAME, "first")
            assert backup.status.phase is BackupPhase.SUCCEEDED, backup.status.message
            archived = await rows.write(2)
            await archive_log(database.client, f"{NAME}-0")
            last = await rows.write(3)
        start = time.monotonic()
        recovery = {"fromDestination": {"s3": bucket.spec}}
        async with running_database(bucket.secret, replicas=1, synchronous="off", recovery=recovery) as database:
            await database.wait_for_members(1)
            assert await Rows(database.client, NAME).read() == [1, 2]
        lost, duration = (last - archived).total_seconds(), time.monotonic() - start
        print(
            f"disaster recovery: {lost:.1f} s of writes lost, {duration:.1f} s until the new cluster serves", flush=True
        )
