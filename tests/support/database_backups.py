"""Backups of a running Database, and databases that are restored from them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg

from konverge import Client, ObjectMeta
from konverge.k8s.core.v1 import Secret, Service
from konverge.objects import from_wire
from konverge_operators.database.api import Database, Phase
from konverge_operators.database.backups.api import BackupPhase, BackupSpec, DatabaseBackup
from konverge_operators.database.postgresql.members import PSQL

__all__ = ["Rows", "archive_log", "back_up", "restore", "wait_for_backup"]

LIMIT = 180.0
_ENDED = (BackupPhase.SUCCEEDED, BackupPhase.FAILED)


class Rows:
    """A table of a database: numbers, each written in a transaction of its own."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    async def write(self, *numbers: int) -> datetime:
        """Write numbers; return the time of the server after the last commit."""
        statements = ["CREATE TABLE IF NOT EXISTS rows (number int PRIMARY KEY)"]
        statements += [f"INSERT INTO rows VALUES ({number})" for number in numbers]
        await self.execute(*statements)
        return await self.time()

    async def time(self) -> datetime:
        """Return the time of the server."""
        return datetime.fromisoformat(str((await self.execute("SELECT clock_timestamp()"))[0][0])).astimezone(UTC)

    async def read(self) -> list[int]:
        return [int(row[0]) for row in await self.execute("SELECT number FROM rows ORDER BY number")]

    async def execute(self, *statements: str) -> Sequence[tuple[Any, ...]]:
        """Run statements, each in a transaction, through the Service of the primary; return the last result."""
        secret = await self._client.get(Secret, f"{self._name}-app")
        host = str((await self._client.get(Service, f"{self._name}-rw")).spec.cluster_ip)
        login = {name: value.decode() for name, value in (secret.data or {}).items()}
        async with asyncio.timeout(LIMIT):
            while True:
                try:
                    return await asyncio.to_thread(_execute, host, login, statements)
                except psycopg.OperationalError as error:  # a Service follows its pods with a delay
                    if "refused" not in str(error):
                        raise
                await asyncio.sleep(0.2)


def _execute(host: str, login: dict[str, str], statements: Sequence[str]) -> Sequence[tuple[Any, ...]]:
    with psycopg.connect(
        host=host,
        user=login["username"],
        password=login["password"],
        dbname=login["database"],
        connect_timeout=10,
        autocommit=True,
    ) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else ()


async def archive_log(client: Client, pod: str, limit: float = LIMIT) -> None:
    """Let the primary begin a new file of its log, and wait until the one before is archived."""

    async def query(statement: str) -> str:
        command = ["sh", "-c", f'{PSQL} --tuples-only --no-align --command="{statement}"']
        result = await client.exec(pod, command, container="database")
        assert result.exit_code == 0, result.stderr
        return result.stdout.decode().strip()

    file = await query("SELECT pg_walfile_name(pg_switch_wal())")
    async with asyncio.timeout(limit):
        while await query("SELECT last_archived_wal FROM pg_stat_archiver") < file:  # noqa: ASYNC110
            await asyncio.sleep(0.2)


async def back_up(client: Client, database: str, name: str, **spec: Any) -> DatabaseBackup:
    """Create a backup and wait for its end."""
    wanted = BackupSpec(database=database, **spec)
    await client.create(DatabaseBackup(metadata=ObjectMeta(name=name, namespace="test"), spec=wanted))
    return await wait_for_backup(client, name)


async def wait_for_backup(client: Client, name: str) -> DatabaseBackup:
    def ended(obj: Any) -> bool:
        return obj is not None and obj.status.phase in _ENDED

    found = await client.wait_for(DatabaseBackup, name, ended, timeout=LIMIT)
    assert found is not None
    return found


async def restore(client: Client, name: str, recovery: dict[str, Any], **spec: Any) -> Database:
    """Create a database with a recovery; return it when it is ready, or has failed."""
    document = {
        "metadata": {"name": name, "namespace": "test"},
        "spec": {"version": "18", "recovery": recovery, **spec},
    }
    await client.create(from_wire(Database, {"apiVersion": "example.com/v1", "kind": "Database", **document}))

    def ended(obj: Any) -> bool:
        return obj is not None and obj.status.phase in (Phase.READY, Phase.FAILED)

    found = await client.wait_for(Database, name, ended, timeout=LIMIT)
    assert found is not None
    return found
