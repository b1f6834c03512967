"""The demo of the Database operator: three real PostgreSQL servers, whose leader is killed, and a backup of them.

The cluster, its process nodes and the operator run in this process; the members are processes of their own. Each step
is checked: by the status of the Database, and by a client of PostgreSQL that connects through the Service.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from konverge.client import Client, exists, is_deleted
from konverge.errors import WaitTimeout
from konverge.k8s.core.v1 import Namespace, Secret, Service, ServiceAccount
from konverge.manager import Operator
from konverge.objects import Key, ObjectMeta
from konverge_operators.database.api import Backup, Database, DatabaseSpec, Phase, Recovery
from konverge_operators.database.backups.api import BackupPhase, BackupSpec, DatabaseBackup
from konverge_operators.database.operator import new_operator
from konverge_operators.database.postgresql.engine import PostgreSQL
from konverge_operators.database.postgresql.local_images import local_images
from konverge_operators.database.postgresql.members import PSQL
from konverge_operators.demo.steps import StepPrinter

if TYPE_CHECKING:
    from konverge_cluster.embedded_cluster import EmbeddedCluster
    from konverge_cluster.processes import LocalImage

__all__ = ["NAMESPACE", "check_machine", "run_database_demo", "running_cluster", "running_operator"]

NAMESPACE: Final = "demo"
_NAME: Final = "orders"
_MEMBERS: Final = 3
_TIMEOUT: Final = 180.0
_RETRY: Final = 0.2
_COPY: Final = "orders-copy"
_BACKUP: Final = "before-the-mistake"


def check_machine() -> None:
    """Raise a usage error when this machine cannot run the members."""
    if not sys.platform.startswith("linux"):
        raise click.UsageError("the demo of databases runs real servers on process nodes, which need Linux")
    if not local_images():
        raise click.UsageError("PostgreSQL and Patroni are not installed: pip install 'konverge-operators[engines]'")


async def run_database_demo(printer: StepPrinter) -> None:
    """Run all steps; the first that fails ends the demo with an error that names it."""
    async with running_cluster(local_images()) as cluster:
        printer.print_step("cluster: API server, controllers and a node that runs processes, in this process")
        async with running_operator(cluster.client(NAMESPACE), new_operator([PostgreSQL()])):
            printer.print_step("operator: runs in this process, with PostgreSQL as its engine")
            await _Steps(cluster, printer).run()
    printer.print_step("ended: every process is gone")


@asynccontextmanager
async def running_cluster(images: Iterable[LocalImage]) -> AsyncGenerator[EmbeddedCluster]:
    """Run a cluster with one process node and the namespace of the demo."""
    # Imported here because the package of the embedded cluster is optional.
    from konverge_cluster.embedded_cluster import EmbeddedCluster
    from konverge_cluster.processes import Processes

    async with EmbeddedCluster(nodes=1, runtime=Processes(images)) as cluster:
        await cluster.listen()  # the members are clients of the API server
        client = cluster.client(NAMESPACE)
        await client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        await client.wait_for(ServiceAccount, "default", exists(), timeout=_TIMEOUT)
        yield cluster


@asynccontextmanager
async def running_operator(client: Client, operator: Operator) -> AsyncGenerator[None]:
    """Install the CRDs of an operator and run it."""
    for crd in operator.crds():
        await client.apply(crd, force=True)
    async with operator.manager(client).running():
        yield


class _Steps:
    """The life of one Database."""

    def __init__(self, cluster: EmbeddedCluster, printer: StepPrinter) -> None:
        self._cluster = cluster
        self._client = cluster.client(NAMESPACE)
        self._printer = printer

    async def run(self) -> None:
        first = await self._create()
        await self._write("before", rows=1)
        self._printer.print_step("wrote: a row, through the Service of the primary")
        await self._kill(first)
        await self._write("after", rows=2)
        self._printer.print_step("wrote: a second row; the first is there, although its server was killed")
        await self._rejoin(first)
        await self._back_up()
        await self._restore()
        await self._delete()

    async def _create(self) -> str:
        spec = DatabaseSpec(
            version="18",
            replicas=_MEMBERS,
            synchronous="strict",
            backup=Backup(enabled=True),
            parameters={"archive_timeout": "1"},  # seconds, so that nobody has to wait for the log
        )
        await self._client.create(Database(metadata=ObjectMeta(name=_NAME), spec=spec))
        ready = await self._wait("all members are ready", _is_complete)
        members = ", ".join(f"{one.name} ({one.role})" for one in ready.status.members)
        self._printer.print_step(f"ready: PostgreSQL {ready.status.version}, {members}")
        return ready.status.primary

    async def _kill(self, primary: str) -> None:
        key = Key(NAMESPACE, primary)
        # Patroni starts again at once; without the API server it cannot keep its lock.
        await self._cluster.faults.block_api_server(key)
        await self._cluster.faults.kill(key)
        self._printer.print_step(f"killed: {primary}, with kill -9, and cut off from the API server")
        found = await self._wait("another member leads", lambda one: one.status.primary not in ("", primary))
        self._printer.print_step(f"failed over: {found.status.primary} is the primary")

    async def _rejoin(self, member: str) -> None:
        await self._cluster.faults.unblock_api_server(Key(NAMESPACE, member))
        await self._wait("all members are ready", _is_complete)
        self._printer.print_step(f"healed: {member} is back as a replica, {_MEMBERS} of {_MEMBERS} members are ready")

    async def _back_up(self) -> None:
        metadata = ObjectMeta(name=_BACKUP)
        await self._client.create(DatabaseBackup(metadata=metadata, spec=BackupSpec(database=_NAME)))

        def ended(obj: Any) -> bool:
            return obj is not None and obj.status.phase in (BackupPhase.SUCCEEDED, BackupPhase.FAILED)

        found = await self._client.wait_for(DatabaseBackup, _BACKUP, ended, timeout=_TIMEOUT)
        if found is None or found.status.phase is not BackupPhase.SUCCEEDED:
            raise self._printer.failure(
                f"the backup failed: {found.status.message if found is not None else 'it is gone'}"
            )
        size = found.status.size / 1e6
        self._printer.print_step(
            f"backed up: {size:.1f} MB, verified with pg_verifybackup, to the claim {_NAME}-backup"
        )

    async def _restore(self) -> None:
        output, _ = await self._query("SELECT clock_timestamp()")
        time = datetime.fromisoformat(output.strip())
        await self._query("DROP TABLE notes")
        self._printer.print_step("dropped: the table, by mistake")
        await self._archive_log(time)
        spec = DatabaseSpec(version="18", recovery=Recovery(from_backup=_BACKUP, target_time=time))
        await self._client.create(Database(metadata=ObjectMeta(name=_COPY), spec=spec))
        await self._wait("the copy is ready", lambda one: one.status.phase is Phase.READY, _COPY)
        await self._write("restored", rows=3, database=_COPY)
        self._printer.print_step(f"restored: {_COPY} is as it was before the mistake, and accepts a third row")

    async def _archive_log(self, time: datetime) -> None:
        """Wait until the log is archived that has what was written at a time."""
        primary = (await self._client.get(Database, _NAME)).status.primary
        statement = f"SELECT last_archived_time > '{time.isoformat()}' FROM pg_stat_archiver"
        command = ["sh", "-c", f'{PSQL} --tuples-only --no-align --command="{statement}"']
        async with asyncio.timeout(_TIMEOUT):
            while (await self._client.exec(primary, command, container="database")).stdout.strip() != b"t":  # noqa: ASYNC110
                await asyncio.sleep(_RETRY)

    async def _delete(self) -> None:
        await self._client.delete(Database, _NAME)
        await self._client.wait_for(Database, _NAME, is_deleted(), timeout=_TIMEOUT)
        claims = len(await self._client.list("persistentvolumeclaims"))
        self._printer.print_step(f"deleted: {claims} claims with the data are kept, as the deletion policy says")

    async def _wait(self, what: str, fact: Callable[[Database], bool], name: str = _NAME) -> Database:
        def holds(obj: Any) -> bool:
            return obj is not None and fact(obj)

        try:
            found = await self._client.wait_for(Database, name, holds, timeout=_TIMEOUT)
        except WaitTimeout as error:
            last = await self._client.get(Database, name)
            text = f"{what}: not within {_TIMEOUT:g} s ({last.status.phase}: {last.status.message})"
            raise self._printer.failure(text) from error
        assert found is not None, "the condition does not hold for an object that does not exist"
        return found

    async def _write(self, text: str, *, rows: int, database: str = _NAME) -> None:
        """Write a row, again until a primary accepts it; check how many there are."""
        statement = "CREATE TABLE IF NOT EXISTS notes (text text PRIMARY KEY);"
        statement += f" INSERT INTO notes VALUES ('{text}') ON CONFLICT DO NOTHING; SELECT count(*) FROM notes"
        error = ""
        try:
            async with asyncio.timeout(_TIMEOUT):
                while True:
                    output, error = await self._query(statement, database)
                    if output.split()[-1:] == [str(rows)]:
                        return
                    await asyncio.sleep(_RETRY)
        except TimeoutError:
            raise self._printer.failure(f"no row was written within {_TIMEOUT:g} s: {error.strip()}") from None

    async def _query(self, statement: str, name: str = _NAME) -> tuple[str, str]:
        """Run a statement with psql, through the Service; return what it prints, and its errors."""
        service = await self._client.get(Service, f"{name}-rw")
        secret = await self._client.get(Secret, (await self._client.get(Database, name)).status.connection_secret)
        login = {name: value.decode() for name, value in (secret.data or {}).items()}
        process = await asyncio.create_subprocess_exec(
            _psql(),
            *("--no-psqlrc", "--tuples-only", "--no-align", "--command", statement),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                **os.environ,
                "PGHOST": str(service.spec.cluster_ip),
                "PGUSER": login["username"],
                "PGPASSWORD": login["password"],
                "PGDATABASE": login["database"],
                "PGCONNECT_TIMEOUT": "3",
            },
        )
        try:
            output, errors = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        return output.decode(), errors.decode()


def _psql() -> str:
    return str(Path(local_images()[0].env["PATH"].split(":")[0]) / "psql")


def _is_complete(database: Database) -> bool:
    status = database.status
    return status.phase is Phase.READY and status.ready_replicas == len(status.members) == _MEMBERS
