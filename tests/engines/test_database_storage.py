"""The storage of a Database: a full disk, a lost claim, more space. The test of the full disk mounts, as root."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from databases import storage_class
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge_operators.database.api import Phase
from running_databases import RunningDatabase, running_database

pytestmark = [pytest.mark.engines, pytest.mark.real_time(limit=1800), pytest.mark.plain_loop]

DISK = "600m"


async def claim_directories(database: RunningDatabase) -> dict[str, Path]:
    """Return the directory of each member's claim."""
    claims = await database.client.list(PersistentVolumeClaim)
    root = database.cluster.runtime.options.directory / "claims"
    return {one.name.removeprefix("data-"): root / f"{one.spec.volume_name}-{one.uid}" for one in claims}


@contextmanager
def small_disk(directory: Path) -> Generator[Path]:
    """Move a directory to a file system of its own, and return the file that fills it."""
    data = directory.with_name(f"{directory.name}.data")
    directory.rename(data)
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=2777", "tmpfs", directory], check=True)
    try:
        subprocess.run(["cp", "--archive", f"{data}/.", directory], check=True)
        yield directory / "filler"
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


def fill(path: Path) -> None:
    """Write until nothing more fits."""
    with path.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(64 * 1024))


async def exhaust_log(database: RunningDatabase, member: str) -> None:
    """Write to the log of a member until it has no space for that: only then PostgreSQL stops.

    The records are small. The last one is cut at the end of a file of the log, and a replica that has this part follows
    the next leader only when that one has written as much.
    """
    statement = "SELECT pg_logical_emit_message(false, 'test', repeat('x', 100)) FROM generate_series(1, 1000)"
    with suppress(psycopg.OperationalError):
        async with await database.load.login.connect(database.addresses[member]) as connection:
            while True:
                await connection.execute(statement)


async def test_a_leader_whose_disk_is_full_hands_over_and_comes_back() -> None:
    """A full disk alone refuses writes: PostgreSQL stops when it cannot write its log either."""
    async with running_database() as database:
        leader = (await database.wait_for_members(3)).status.primary
        await database.edit(hibernate=True)
        await database.wait(lambda one: one.status.phase is Phase.HIBERNATED)
        directories = await claim_directories(database)
        with small_disk(directories[leader]) as filler:
            await database.edit(hibernate=False)
            await database.wait_for_members(3)
            await database.annotate("example.com/switchover", leader)
            await database.wait(lambda one: one.status.primary == leader)
            await database.connect()
            async with database.clients():
                async with database.outage(f"the disk of {leader} is full"):
                    await asyncio.to_thread(fill, filler)
                    await exhaust_log(database, leader)
                    await database.wait(lambda one: one.status.primary not in ("", leader))
                filler.unlink()
                await database.wait_for_members(3)
            await database.edit(hibernate=True)
            await database.wait(lambda one: one.status.phase is Phase.HIBERNATED)
        database.check_outages()


async def test_a_replica_whose_claim_is_lost_gets_a_new_one_and_all_data() -> None:
    async with running_database() as database:
        status = (await database.wait_for_members(3)).status
        replica = next(one.name for one in status.members if one.role == "replica")
        await database.connect()
        before = await database.client.get(PersistentVolumeClaim, f"data-{replica}")
        pod = await database.client.get(Pod, replica)
        async with database.clients():
            async with database.outage(f"the claim of {replica} is lost"):
                await database.faults.delete_claim(database.key(f"data-{replica}"))
                await database.client.wait_for(
                    Pod, replica, lambda one: one is not None and one.uid != pod.uid, timeout=180
                )
            await database.wait_for_members(3)
        after = await database.client.get(PersistentVolumeClaim, f"data-{replica}")
        assert after.uid != before.uid
        database.check_outages()


async def test_storage_grows_under_load() -> None:
    async with running_database(storage_class(), storage_class_name="fast", storage_size="1Gi") as database:
        await database.wait_for_members(3)
        await database.connect()
        pods = {pod.name: pod.uid for pod in await database.client.list(Pod)}
        async with database.clients():
            await database.edit(storageSize="2Gi")
            await database.wait(lambda one: one.status.phase is Phase.READY and one.status.storage == "2Gi")
        assert {pod.name: pod.uid for pod in await database.client.list(Pod)} == pods
        sizes = [one.status.capacity for one in await database.client.list(PersistentVolumeClaim)]
        assert sizes == [{"storage": "2Gi"}] * 3
