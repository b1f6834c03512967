"""Backups of real MariaDB: a second that is restored, damaged and missing parts, retention, the schedule."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from buckets import Bucket, running_bucket
from database_backups import back_up, wait_for_backup
from konverge.k8s.batch.v1 import CronJob
from konverge_operators.database.api import Phase
from konverge_operators.database.archive.base_backups import find_backups
from konverge_operators.database.backups.api import BackupPhase, DatabaseBackup
from konverge_operators.database.mariadb.archive.logs import find_logs
from mariadb_backups import MariaDBRows, archive_log, restore_mariadb
from running_databases import NAME
from running_mariadb import MISSING, RunningMariaDB, running_mariadb

pytestmark = [
    pytest.mark.engines,
    pytest.mark.real_time(limit=900),
    pytest.mark.plain_loop,
    pytest.mark.skipif(bool(MISSING), reason="needs MariaDB: apt-get install mariadb-server galera-4 rsync"),
]


def spec(bucket: Bucket, **fields: Any) -> dict[str, Any]:
    return {"replicas": 1, "backup": {"enabled": True, "destination": {"s3": bucket.spec}, **fields}}


async def test_a_second_is_restored_although_another_member_has_archived_it() -> None:
    """Under load, with a killed primary after the backup: all rows until the second are there, later ones are not."""
    with running_bucket() as bucket:
        async with running_mariadb(bucket.secret, **{**spec(bucket), "replicas": 3}) as database:
            ready = await database.wait_for_members(3)
            await database.connect()
            rows = MariaDBRows(database.client, NAME)
            await rows.write(1)
            async with database.clients():
                await good_backup(database, "first")
                await rows.write(2)
                await archive_log(database.client, ready.status.primary)
                await database.kill(ready.status.primary)
                await database.load.progress()
                await database.wait_for_members(3)
            time = await rows.write(3)
            written = await rows.execute("SELECT client, number FROM writes ORDER BY client, number")
            await rows.next_second()
            await rows.write(4)
            assert (await database.primary()) != ready.status.primary
            await archive_log(database.client, await database.primary())
            source = {"fromDestination": {"s3": bucket.spec, "database": NAME}}
            restored = await restore_mariadb(database.client, "copy", {**source, "targetTime": time.isoformat()})
            assert restored.status.phase is Phase.READY, restored.status.message
            copy = MariaDBRows(database.client, "copy")
            assert await copy.read() == [1, 2, 3]
            assert await copy.execute("SELECT client, number FROM writes ORDER BY client, number") == written
            print(f"restored {len(written)} rows of a load, and a second, across a failover")
            last = await restore_mariadb(database.client, "last", source)
            assert last.status.phase is Phase.READY, last.status.message
            assert await MariaDBRows(database.client, "last").read() == [1, 2, 3, 4]


async def test_damage_is_found_and_nothing_is_restored_in_silence() -> None:
    """A damaged part, a damaged file of the log and a missing one: each ends the recovery with a message."""
    with running_bucket() as bucket:
        async with running_mariadb(bucket.secret, **spec(bucket)) as database:
            await database.wait_for_members(1)
            rows, store = MariaDBRows(database.client, NAME), bucket.store
            await rows.write(1)
            await good_backup(database, "first")
            for number in (2, 3):
                await rows.write(number)
                await archive_log(database.client, f"{NAME}-0")
            (backup,) = find_backups(store, NAME)
            logs = find_logs(store, backup.path)[-2:]
            for name, key, problem in (
                ("one", backup.parts[0].key, "the checksum of part-00000 differs"),
                ("two", logs[0].key, "is damaged"),
            ):
                content = store.get(key)
                store.put(key, content[:100] + bytes([content[100] ^ 1]) + content[101:])
                assert problem in await failed_recovery(database, name)
                store.put(key, content)
            content = store.get(logs[0].key)
            store.delete(logs[0].key)
            assert "lacks the transactions" in await failed_recovery(database, "three")
            store.put(logs[0].key, content)
            restored = await restore_mariadb(database.client, "copy", {"fromBackup": "first"})
            assert restored.status.phase is Phase.READY, restored.status.message
            assert await MariaDBRows(database.client, "copy").read() == [1, 2, 3]


async def test_retention_deletes_dumps_and_log_but_never_the_last_good_backup() -> None:
    with running_bucket() as bucket:
        async with running_mariadb(bucket.secret, **spec(bucket)) as database:
            await database.wait_for_members(1)
            rows = MariaDBRows(database.client, NAME)
            for number, name in enumerate(("one", "two", "three")):
                await rows.write(number)
                await archive_log(database.client, f"{NAME}-0")
                await good_backup(database, name)
            path = find_backups(bucket.store, NAME)[-1].path
            assert len(find_logs(bucket.store, path)) >= 3
            for age, name in ((30, "one"), (20, "two"), (10, "three")):
                await _age(database, name, timedelta(days=age))
            for name in ("one", "two"):
                await database.client.wait_for(DatabaseBackup, name, lambda one: one is None, timeout=180.0)
            (kept,) = find_backups(bucket.store, NAME)
            assert kept.name == "three"
            assert all(one.last > int(kept.first) for one in find_logs(bucket.store, path))
            restored = await restore_mariadb(database.client, "copy", {"fromBackup": "three"})
            assert restored.status.phase is Phase.READY, restored.status.message
            assert await MariaDBRows(database.client, "copy").read() == [0, 1, 2]


async def test_the_schedule_makes_a_backup() -> None:
    """Every minute: the Job of the CronJob becomes a DatabaseBackup, and the status has it."""
    with running_bucket() as bucket:
        async with running_mariadb(bucket.secret, **spec(bucket, schedule="* * * * *")) as database:
            await database.wait_for_members(1)
            assert (await database.client.get(CronJob, f"{NAME}-backup")).spec.schedule == "* * * * *"
            found = await database.wait(lambda one: bool(one.status.last_backup.name))
            backup = await wait_for_backup(database.client, found.status.last_backup.name)
            assert backup.status.phase is BackupPhase.SUCCEEDED
            assert found.status.recoverable_from == backup.status.completed


async def good_backup(database: RunningMariaDB, name: str) -> None:
    backup = await back_up(database.client, NAME, name)
    assert backup.status.phase is BackupPhase.SUCCEEDED, backup.status.message


async def failed_recovery(database: RunningMariaDB, name: str) -> str:
    """Restore the first backup; return why that has failed."""
    restored = await restore_mariadb(database.client, name, {"fromBackup": "first"})
    assert restored.status.phase is Phase.FAILED, restored.status.message
    return restored.status.message


async def _age(database: RunningMariaDB, name: str, age: timedelta) -> None:
    found = await database.client.get(DatabaseBackup, name)
    assert found.status.completed is not None
    change = {"status": {"completed": (found.status.completed - age).isoformat()}}
    await database.client.patch(DatabaseBackup, name, change, subresource="status")
