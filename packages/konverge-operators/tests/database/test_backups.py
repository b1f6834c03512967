"""Backups of a Database on virtual time: Jobs, schedule, retention, deletion, recovery; an engine in memory."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from databases import NAME, World, backup_of, database, running
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.batch.v1 import CronJob, Job, JobSpec
from konverge.k8s.core.v1 import PersistentVolumeClaim, PodTemplateSpec
from konverge.objects import ObjectMeta, find_condition, now
from konverge_cluster.testing import TestCluster
from konverge_operators.database.api import Database, Destination, Phase
from konverge_operators.database.backups.api import BackupPhase, DatabaseBackup, Location
from konverge_operators.database.backups.jobs import archive_path_of
from konverge_operators.database.backups.retention import expired_backups

DAY = timedelta(days=1)


async def backups(world: World) -> list[DatabaseBackup]:
    return list(await world.client.list(DatabaseBackup, namespace="default"))


async def back_up(world: World, name: str = "first", **spec: Any) -> DatabaseBackup:
    await world.client.create(backup_of(NAME, name, **spec))
    await world.settle()
    return await world.client.get(DatabaseBackup, name, namespace="default")


async def test_a_backup_succeeds_and_the_status_of_the_database_has_it(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(backup={"enabled": True})
        found = await back_up(world)
        assert found.status.phase is BackupPhase.SUCCEEDED
        status = await world.status()
        assert (status.last_backup.name, status.recoverable_from) == ("first", found.status.completed)
        condition = find_condition(status.conditions, "Backup")
        assert condition is not None
        assert (condition.status, condition.reason) == ("True", "Recoverable")
        assert "no protection against the loss of the cluster" in (condition.message or "")
        claim = await world.client.get(PersistentVolumeClaim, f"{NAME}-backup", namespace="default")
        assert not claim.metadata.owner_references


async def test_a_backup_waits_until_its_database_has_backups(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        found = await back_up(world)
        assert (found.status.phase, found.status.message) == (BackupPhase.PENDING, f"there is no Database {NAME}")
        await world.create()
        await world.settle()
        (found,) = await backups(world)
        assert found.status.message == f"backup.enabled of the Database {NAME} is false"
        await world.change(backup={"enabled": True})
        (found,) = await backups(world)
        assert found.status.phase is BackupPhase.SUCCEEDED


async def test_a_backup_whose_job_is_missing_goes_to_the_path_of_the_version_that_runs(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        found = await back_up(world)
        found.status.location = Location(destination=Destination(claim=f"{NAME}-backup"), path=f"{NAME}/uid/17")
        await world.client.update_status(found)
        created = await world.create(backup={"enabled": True})
        (found,) = await backups(world)
        assert found.status.phase is BackupPhase.SUCCEEDED
        assert found.status.location is not None
        assert found.status.location.path == f"{NAME}/{created.uid}/18"
        assert (await world.status()).last_backup.name == found.name


async def test_a_job_of_the_schedule_says_where_its_backup_is(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        created = await world.create(backup={"enabled": True})
        cron = await world.client.get(CronJob, f"{NAME}-backup", namespace="default")
        pods = cron.spec.job_template.spec.template.spec if cron.spec.job_template.spec is not None else None
        job = Job(
            metadata=ObjectMeta(name="one", namespace="default"), spec=JobSpec(template=PodTemplateSpec(spec=pods))
        )
        assert archive_path_of(job) == f"{NAME}/{created.uid}/18"


async def test_the_schedule_makes_backups_and_retention_deletes_those_that_no_time_needs(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(backup={"enabled": True, "schedule": "0 * * * *", "retention": "3h"})
        await asyncio.sleep(8 * 3600.0)
        await world.settle()
        found = await backups(world)
        assert {one.status.phase for one in found} == {BackupPhase.SUCCEEDED}
        times = sorted(one.status.completed for one in found if one.status.completed is not None)
        limit = now() - timedelta(hours=3)
        assert len([time for time in times if time <= limit]) == 1
        assert len(times) == 4
        assert len(world.engine.backups.stored) == 4
        assert not (await world.client.get(CronJob, f"{NAME}-backup", namespace="default")).spec.suspend
        await world.change(backup={"enabled": False})
        assert not await world.client.list(CronJob, namespace="default")


async def test_deleting_a_backup_deletes_its_data_unless_it_is_retained(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(backup={"enabled": True})
        await back_up(world, "kept", retain=True)
        await back_up(world, "lost")
        for one in await backups(world):
            await world.delete(one)
        await world.settle()
        await world.write()
        assert not await backups(world)
        assert set(world.engine.backups.stored) == {"default/kept"}


async def test_a_database_is_restored_before_it_has_members(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(backup={"enabled": True})
        await world.write()
        await back_up(world)
        await world.client.create(database("copy", recovery={"fromBackup": "first"}))
        await asyncio.sleep(1.0)
        copy = await world.client.get(Database, "copy", namespace="default")
        assert copy.status.phase is Phase.RESTORING
        assert "copy" not in {one.name for one in await world.client.list(StatefulSet, namespace="default")}
        await world.settle()
        copy = await world.client.get(Database, "copy", namespace="default")
        assert (copy.status.phase, world.engine.backups.restored[copy.uid]) == (Phase.READY, 1)
        assert copy.status.restored_at is not None


async def test_a_recovery_says_what_is_missing_and_goes_on_when_it_is_there(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.client.create(database("copy", recovery={"fromBackup": "first"}))
        await world.settle()
        copy = await world.client.get(Database, "copy", namespace="default")
        assert (copy.status.phase, copy.status.message) == (Phase.FAILED, "there is no DatabaseBackup first")
        await world.create(backup={"enabled": True})
        await back_up(world)
        await world.settle()
        copy = await world.client.get(Database, "copy", namespace="default")
        assert copy.status.phase is Phase.READY


async def test_a_deleted_job_is_created_again(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(backup={"enabled": True})
        await world.client.create(backup_of(NAME))
        await asyncio.sleep(1.0)
        job = await world.client.get(Job, "first", namespace="default")
        await world.client.delete(job, propagation="Background")
        await world.settle()
        (found,) = await backups(world)
        assert found.status.phase is BackupPhase.SUCCEEDED


def ended(name: str, age: timedelta, phase: BackupPhase = BackupPhase.SUCCEEDED, *, retain: bool = False) -> Any:
    found = backup_of(NAME, name, retain=retain)
    found.status.phase = phase
    found.status.completed = found.metadata.creation_timestamp = now() - age
    return found


@pytest.mark.parametrize(
    ("found", "expired"),
    [
        ([], []),
        ([ended("only", 30 * DAY)], []),
        ([ended("old", 30 * DAY), ended("covers", 8 * DAY), ended("new", DAY)], ["old"]),
        ([ended("good", 30 * DAY), ended("bad", DAY, BackupPhase.FAILED)], []),
        ([ended("good", 30 * DAY), ended("bad", 8 * DAY, BackupPhase.FAILED)], ["bad"]),
        ([ended("kept", 30 * DAY, retain=True), ended("newer", 20 * DAY), ended("newest", 10 * DAY)], ["newer"]),
    ],
    ids=["none", "last-good", "covered", "failed-is-young", "failed-is-old", "retained"],
)
def test_retention_keeps_what_the_window_needs(found: list[DatabaseBackup], expired: list[str]) -> None:
    assert [one.name for one in expired_backups(found, 7 * DAY, now())] == expired
