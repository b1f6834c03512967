"""Major upgrades of a Database: the old data belongs to the members until the new is complete, and never a mixture."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from databases import NAME, World, backup_of, database, running
from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import ConfigMap, Pod
from konverge_cluster.testing import TestCluster
from konverge_operators.database.api import DatabaseStatus, Destination, Phase, Upgrade
from konverge_operators.database.backups.api import BackupPhase, DatabaseBackup, Location
from konverge_operators.database.backups.status import BackupMetrics
from konverge_operators.database.facts import Facts

pytestmark = pytest.mark.plain_loop

FAILS = {"parameters": {"upgrade": "fails"}}
BACKUP = {"enabled": True}
MEMBERS = "app.kubernetes.io/component=member"
JOBS = "app.kubernetes.io/component=upgrade"


async def archive_paths(world: World) -> set[str | None]:
    pods = await world.client.list(Pod, namespace="default", labels=MEMBERS)
    return {one.value for pod in pods for one in pod.spec.containers[0].env or () if one.name == "ARCHIVE_PATH"}


async def images(world: World) -> list[str]:
    pods = await world.client.list(Pod, namespace="default", labels=MEMBERS)
    return [str(pod.spec.containers[0].image) for pod in pods]


async def check(world: World, version: str, count: int) -> DatabaseStatus:
    """Check that all members run a version, that writes go on, and that nothing of the Job is left."""
    status = await world.status()
    assert await images(world) == [f"memory:{version}"] * count
    assert status.ready_replicas == count
    assert await world.write()
    assert not list(await world.client.list(Job, namespace="default", labels=JOBS))
    return status


async def test_a_higher_major_upgrades_the_data(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=3, version="17")
        await world.change({"example.com/switchover": f"{NAME}-2"})
        assert await world.write()
        status = await world.change(version="18")
        assert (status.phase, status.version, status.upgrade) == (Phase.READY, "18.6", Upgrade())
        assert status.primary == f"{NAME}-0"
        await check(world, "18.6", 3)
        events = await world.events()
        assert {"UpgradeStarted: from 17 to 18.6", "DataUpgraded: from 17 to 18.6"} <= set(events)
        assert "Upgraded: all members run 18.6" in events


async def test_a_failed_upgrade_ends_on_the_old_version_and_is_tried_again_on_request(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=2, version="17", **FAILS)
        status = await world.change(version="18")
        assert (status.phase, status.version, status.upgrade.stage) == (Phase.DEGRADED, "17.12", "")
        assert status.message.startswith("18 was not reached, 17 serves: ")
        await check(world, "17.12", 2)
        jobs = [one for one in await world.events() if one.startswith("UpgradeStarted")]
        assert len(jobs) == 1
        status = await world.change(parameters={"upgrade": None})
        assert status.phase is Phase.DEGRADED
        status = await world.change({"example.com/retry-upgrade": "1"})
        assert (status.phase, status.version, status.upgrade) == (Phase.READY, "18.6", Upgrade())
        await check(world, "18.6", 2)


async def test_the_backup_of_the_old_version_comes_first_and_one_of_the_new_follows(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(version="17", backup=BACKUP)
        assert await world.write()
        await world.edit(version="18")
        while (await world.status()).upgrade.stage != "BackingUp":  # noqa: ASYNC110 - on virtual time
            await asyncio.sleep(0.2)
        before = (await world.status()).upgrade.backup
        assert await world.write()
        while (await world.status()).upgrade.stage == "BackingUp":  # noqa: ASYNC110 - on virtual time
            await asyncio.sleep(0.2)
        first = await world.client.get(DatabaseBackup, before, namespace="default")
        assert first.status.phase is BackupPhase.SUCCEEDED
        await world.settle()
        status = await check(world, "18.6", 1)
        second = await world.client.get(DatabaseBackup, status.last_backup.name, namespace="default")
        paths = [one.status.location.path for one in (first, second) if one.status.location is not None]
        root = f"{NAME}/{(await world.get()).uid}"
        assert paths == [f"{root}/17", f"{root}/18"]
        assert status.recoverable_from == second.status.completed
        assert status.recoverable_to == second.status.completed
        assert not [one for one in await world.events() if one.startswith("NoBackup")]


async def test_members_archive_the_log_of_each_major_to_a_path_of_its_own(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(version="17", backup=BACKUP)
        assert await archive_paths(world) == {"$(ARCHIVE_ROOT)/17"}
        await world.change(version="18")
        assert await archive_paths(world) == {"$(ARCHIVE_ROOT)/18"}
        config = await world.client.get(ConfigMap, f"{NAME}-engine", namespace="default")
        assert (config.data or {})["archive-root"] == f"{NAME}/{(await world.get()).uid}"


async def test_a_backup_that_fails_ends_the_upgrade_before_a_member_stops(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(version="17", backup=BACKUP, parameters={"backup": "fails"})
        (pod,) = await world.client.list(Pod, namespace="default", labels=MEMBERS)
        status = await world.change(version="18")
        assert (status.phase, status.version, status.upgrade.stage) == (Phase.DEGRADED, "17.12", "")
        assert "the backup orders-before-18-" in status.message
        (found,) = await world.client.list(Pod, namespace="default", labels=MEMBERS)
        assert (found.uid, await world.write()) == (pod.uid, True)
        status = await world.change({"example.com/retry-upgrade": "1"}, parameters={"backup": None})
        assert (status.phase, status.version) == (Phase.READY, "18.6")
        await check(world, "18.6", 1)


async def test_members_stop_only_when_every_backup_that_is_being_written_has_ended(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(version="17", backup=BACKUP)
        await world.edit(version="18")
        while not await world.client.list(Job, namespace="default"):  # noqa: ASYNC110 - on virtual time
            await asyncio.sleep(0.2)
        await world.edit(parameters={"backup": "slow"})
        await world.client.create(backup_of(NAME, "second"))
        while (await world.status()).upgrade.stage != "Stopping":  # noqa: ASYNC110 - on virtual time
            await asyncio.sleep(0.2)
        second = await world.client.get(DatabaseBackup, "second", namespace="default")
        assert second.status.phase is BackupPhase.RUNNING
        while (await world.status()).upgrade.stage == "Stopping":  # noqa: ASYNC110 - on virtual time
            await asyncio.sleep(0.2)
        job = await world.client.get(Job, "second", namespace="default")
        assert [one.type for one in job.status.conditions if one.status == "True"][-1:] == ["Complete"]
        await world.settle()
        await check(world, "18.6", 1)


def test_the_age_of_the_last_backup_is_that_of_the_old_version_until_the_new_one_has_its_own() -> None:
    metrics, owner = BackupMetrics(), database(backup=BACKUP)
    owner.metadata.uid, created = "u1", datetime(2026, 1, 1, tzinfo=UTC)
    owner.metadata.creation_timestamp = created
    before, after = (finished_backup(major, created + timedelta(days=days)) for major, days in (("17", 5), ("18", 6)))
    expected = [((), created), ((before,), created + timedelta(days=5)), ((before, after), created + timedelta(days=6))]
    for backups, time in expected:
        metrics.record(owner, Facts(database=owner, now=created + timedelta(days=7), major="18", backups=backups))
        (sample,) = next(iter(metrics.time.collect())).samples
        assert sample.value == time.timestamp()


def finished_backup(major: str, completed: datetime) -> DatabaseBackup:
    found = backup_of(NAME, f"of-{major}")
    found.status.phase, found.status.completed = BackupPhase.SUCCEEDED, completed
    found.status.location = Location(destination=Destination(claim="backup"), path=f"{NAME}/u1/{major}")
    return found


async def test_an_upgrade_without_backups_warns(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(version="17")
        await world.change(version="18")
        assert "NoBackup: backup.enabled is false: 17 is upgraded to 18 without a backup" in await world.events()
        assert not list(await world.client.list(DatabaseBackup, namespace="default"))


async def test_a_failed_upgrade_is_given_up_by_the_old_version(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(version="17", **FAILS)
        await world.change(version="18")
        status = await world.change(version="17")
        assert (status.phase, status.version) == (Phase.READY, "17.12")
        await check(world, "17.12", 1)


@pytest.mark.parametrize("stage", ["Stopping", "Stopped"])
async def test_an_upgrade_is_left_while_it_runs(cluster: TestCluster, stage: str) -> None:
    async with running(cluster) as world:
        await world.create(replicas=2, version="17")
        assert await world.write()
        await world.edit(version="18")
        while (await world.status()).upgrade.stage != stage:  # noqa: ASYNC110 - on virtual time
            await asyncio.sleep(0.2)
        status = await world.change(version="17.12")
        assert (status.phase, status.version, status.upgrade) == (Phase.READY, "17.12", Upgrade())
        await check(world, "17.12", 2)


async def test_data_is_never_taken_back_to_an_older_major(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(version="18")
        status = await world.change(version="17")
        assert (status.phase, status.message) == (Phase.DEGRADED, "data of version 18 cannot become 17")
        assert await images(world) == ["memory:18.6"]
        assert await world.write()


async def test_a_hibernated_database_is_upgraded_when_it_serves_again(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=2, version="17")
        assert (await world.change(hibernate=True)).phase is Phase.HIBERNATED
        assert (await world.change(version="18")).phase is Phase.HIBERNATED
        status = await world.change(hibernate=False)
        assert (status.phase, status.version) == (Phase.READY, "18.6")
        await check(world, "18.6", 2)


async def test_old_data_is_deleted_only_when_members_run(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=2, version="17")
        await world.edit(version="18")
        while (await world.status()).upgrade.stage != "Starting":  # noqa: ASYNC110 - on virtual time
            await asyncio.sleep(0.2)
        status = await world.change(hibernate=True)
        assert (status.phase, status.upgrade.stage) == (Phase.HIBERNATED, "Starting")
        assert "Upgraded: all members run 18.6" not in await world.events()
        status = await world.change(hibernate=False)
        assert (status.phase, status.upgrade) == (Phase.READY, Upgrade())
        assert "Upgraded: all members run 18.6" in await world.events()
