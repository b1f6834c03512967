"""The Database operator under seeded faults: crashes, lost responses, stale lists, other clients; an engine in memory.

In every run: never two writable members, never a second initialisation over data, never another password, no lost
write, and the state after each step is that of the run without faults.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from databases import NAME, backup_of, database, storage_class
from konverge.manager import Operator
from konverge_cluster.testing import Simulation, simulate
from konverge_operators.database.api import Database, DatabaseStatus, Phase
from konverge_operators.database.backups.api import BackupPhase, DatabaseBackup
from konverge_operators.database.memory import InMemoryEngine
from konverge_operators.database.operator import new_operator

READY = Phase.READY
S3 = {"endpoint": "https://s3.example.com", "bucket": "backups", "secretName": "s3"}


def build(engine: InMemoryEngine) -> Operator:
    return new_operator([engine])


async def change(sim: Simulation[InMemoryEngine], spec: dict[str, object], phase: Phase = READY) -> Database:
    """Change the database, wait, and check what must hold after every step."""
    await sim.client.patch(Database, NAME, {"spec": spec})
    return await check(sim, phase)


async def check(sim: Simulation[InMemoryEngine], phase: Phase = READY) -> Database:
    await sim.settle()
    found = await sim.client.get(Database, NAME)
    assert found.status.phase is phase, found.status
    if phase is READY:
        assert found.status.ready_replicas == found.spec.replicas
        assert await sim.external.write(found)
    assert not sim.external.violations
    return found


async def begin(sim: Simulation[InMemoryEngine], **spec: Any) -> None:
    sim.external.server = sim.cluster.client()
    await sim.client.create(storage_class())
    await sim.client.create(database(storageClassName="fast", deletionPolicy="Delete", version="18.4", **spec))
    await check(sim)


async def short(sim: Simulation[InMemoryEngine]) -> None:
    """Create, update and scale in: the primary moves to the replica, and back."""
    await begin(sim, replicas=2)
    found = await change(sim, {"replicas": 1, "version": "18.6"})
    assert (found.status.primary, found.status.version) == (f"{NAME}-0", "18.6")
    assert list(sim.external.initializations.values()) == [1]


async def long(sim: Simulation[InMemoryEngine]) -> None:
    """Create, scale, update, grow, hibernate and resume."""
    await begin(sim, replicas=2)
    await change(sim, {"replicas": 3, "version": "18.6", "parameters": {"max_connections": "50"}})
    await change(sim, {"replicas": 1, "storageSize": "2Gi"})
    await change(sim, {"hibernate": True}, Phase.HIBERNATED)
    await change(sim, {"hibernate": False})
    assert list(sim.external.initializations.values()) == [1]


async def backup(sim: Simulation[InMemoryEngine]) -> None:
    """Back up, restore the backup into a second database, which waits for it, and delete it."""
    sim.external.server = sim.cluster.client()
    await sim.client.create(storage_class())
    fields: dict[str, Any] = {"storageClassName": "fast", "deletionPolicy": "Delete"}
    await sim.client.create(database(**fields, backup={"enabled": True, "destination": {"s3": S3}}))
    await sim.client.create(backup_of(NAME))
    await sim.client.create(database("copy", **fields, recovery={"fromBackup": "first"}))
    await check(sim)
    copy = await sim.client.get(Database, "copy")
    assert copy.status.phase is READY, copy.status
    assert (await sim.client.get(DatabaseBackup, "first")).status.phase is BackupPhase.SUCCEEDED
    assert sim.external.backups.restored[copy.uid] == sim.external.backups.stored["default/first"]
    await sim.client.delete(DatabaseBackup, "first")
    await check(sim)
    assert not await sim.client.list(DatabaseBackup)
    assert sorted(sim.external.initializations.values()) == [1, 1]


async def create_seventeen(sim: Simulation[InMemoryEngine], **spec: Any) -> None:
    """Create a database with backups, and write once; the upgrade follows before everything has settled."""
    sim.external.server = sim.cluster.client()
    await sim.client.create(storage_class())
    fields: dict[str, Any] = {"storageClassName": "fast", "deletionPolicy": "Delete", "version": "17"}
    await sim.client.create(database(**fields, backup={"enabled": True, "destination": {"s3": S3}}, **spec))
    found = await wait_for(sim, lambda one: one.phase is READY)
    assert await sim.external.write(found)


async def wait_for(sim: Simulation[InMemoryEngine], fact: Callable[[DatabaseStatus], bool]) -> Database:
    while not fact((found := await sim.client.get(Database, NAME)).status):  # noqa: ASYNC110 - on virtual time
        await asyncio.sleep(1.0)
    return found


async def delete_backups(sim: Simulation[InMemoryEngine]) -> None:
    """Delete the backups: they outlive their database, and the seconds that each took differ under faults."""
    for one in await sim.client.list(DatabaseBackup):
        await sim.client.delete(one)


async def check_upgraded(sim: Simulation[InMemoryEngine]) -> None:
    """Upgrade to the next major version. Each version has its own path, and times since the backup after it count."""
    await sim.client.patch(Database, NAME, {"spec": {"version": "18.6", "parameters": {"upgrade": None}}})
    status = (await wait_for(sim, lambda one: "-after-18-" in one.last_backup.name)).status
    backups = {one.name: one.status for one in await sim.client.list(DatabaseBackup) if one.spec.database == NAME}
    assert {one.phase for one in backups.values()} == {BackupPhase.SUCCEEDED}
    assert status.recoverable_from == backups[status.last_backup.name].completed
    majors = [one.location.path.rpartition("/")[2] for one in backups.values() if one.location is not None]
    assert sorted(majors) == ["17", "18"]
    await delete_backups(sim)
    found = await check(sim)
    assert (found.status.version, list(sim.external.upgrades.values())) == ("18.6", ["18"])
    assert list(sim.external.initializations.values()) == [1]


async def store_backup(sim: Simulation[InMemoryEngine]) -> None:
    """Create the backup "first" of a database that is lost, with three writes."""
    await sim.client.create(backup_of("lost"))
    location = {"destination": {"s3": S3}, "path": "lost/1/17", "engine": "postgresql", "version": "17.12"}
    times = dict.fromkeys(("started", "completed"), "2026-01-01T00:00:00Z")
    status = {"phase": "Succeeded", "location": location, **times}
    await sim.client.patch(DatabaseBackup, "first", {"status": status}, subresource="status")
    sim.external.backups.stored["default/first"] = 3


async def restore_and_upgrade(sim: Simulation[InMemoryEngine]) -> None:
    """Restore a backup into a database, upgrade it to the next major version between two backups, and delete all."""
    await store_backup(sim)
    await create_seventeen(sim, recovery={"fromBackup": "first"})
    assert list(sim.external.backups.restored.values()) == [3]
    await sim.client.delete(DatabaseBackup, "first")
    await check_upgraded(sim)
    assert not await sim.client.list(DatabaseBackup)


async def long_upgrade(sim: Simulation[InMemoryEngine]) -> None:
    """Upgrade two members to the next major version: once it fails, then it succeeds. Each time there is a backup."""
    await create_seventeen(sim, replicas=2, parameters={"upgrade": "fails"})
    await sim.client.patch(Database, NAME, {"spec": {"version": "18"}})
    await wait_for(sim, lambda one: bool(one.upgrade.message))
    await delete_backups(sim)
    found = await check(sim, Phase.DEGRADED)
    assert (found.status.version, found.status.ready_replicas, sim.external.upgrades) == ("17.12", 2, {})
    assert await sim.external.write(found)
    await check_upgraded(sim)


@simulate(build, external=InMemoryEngine, seeds=50, counts=False)
async def test_recovery_backups_and_a_major_upgrade_under_seeded_faults(sim: Simulation[InMemoryEngine]) -> None:
    await restore_and_upgrade(sim)


@pytest.mark.campaigns
@simulate(build, external=InMemoryEngine, seeds=2000, counts=False)
async def test_a_backup_and_its_recovery_under_two_thousand_seeds(sim: Simulation[InMemoryEngine]) -> None:
    await backup(sim)


@pytest.mark.campaigns
@simulate(build, external=InMemoryEngine, seeds=2000, counts=False)
async def test_a_major_upgrade_under_two_thousand_seeds(sim: Simulation[InMemoryEngine]) -> None:
    await long_upgrade(sim)


def in_memory_mariadb() -> InMemoryEngine:
    return InMemoryEngine(name="mariadb")


async def odd(sim: Simulation[InMemoryEngine]) -> None:
    """Create, update and scale in a database of the other engine, which has an odd number of members."""
    await begin(sim, engine="mariadb", replicas=3)
    await change(sim, {"replicas": 1, "version": "18.6"})
    assert list(sim.external.initializations.values()) == [1]


@pytest.mark.campaigns
@simulate(build, external=in_memory_mariadb, seeds=500, counts=False)
async def test_a_mariadb_under_five_hundred_seeds(sim: Simulation[InMemoryEngine]) -> None:
    await odd(sim)


@simulate(build, external=InMemoryEngine, seeds=50, counts=False)
async def test_a_database_under_seeded_faults(sim: Simulation[InMemoryEngine]) -> None:
    await short(sim)


@pytest.mark.campaigns
@simulate(build, external=InMemoryEngine, seeds=2000, counts=False)
async def test_a_database_under_two_thousand_seeds(sim: Simulation[InMemoryEngine]) -> None:
    await short(sim)


@pytest.mark.campaigns
@simulate(build, external=InMemoryEngine, seeds=200, counts=False)
async def test_the_whole_life_of_a_database_under_two_hundred_seeds(sim: Simulation[InMemoryEngine]) -> None:
    await long(sim)
