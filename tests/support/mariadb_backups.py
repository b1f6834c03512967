"""Rows of a running MariaDB, its archived log, and databases that are restored from its backups."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

from database_backups import restore
from database_load import Login
from konverge import Client
from konverge.k8s.core.v1 import Secret, Service
from konverge_operators.database.api import Database
from konverge_operators.database.mariadb.members import CLIENT
from mariadb_load import query

__all__ = ["MariaDBRows", "archive_log", "restore_mariadb"]

LIMIT = 180.0


class MariaDBRows:
    """A table of a database: numbers, each written in a transaction of its own."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name

    async def write(self, *numbers: int) -> datetime:
        """Write numbers; return the end of the second of the last commit."""
        statements = ["CREATE TABLE IF NOT EXISTS numbers (number int PRIMARY KEY)"]
        await self.execute(*statements, *(f"INSERT INTO numbers VALUES ({number})" for number in numbers))
        return await self.time()

    async def time(self) -> datetime:
        """Return the second of the server. A transaction is restored with all others of its second."""
        return datetime.fromtimestamp(int((await self.execute("SELECT UNIX_TIMESTAMP()"))[-1]), UTC)

    async def next_second(self) -> None:
        """Wait until a transaction belongs to another second."""
        before = await self.time()
        while await self.time() == before:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def read(self) -> list[int]:
        return [int(row) for row in await self.execute("SELECT number FROM numbers ORDER BY number")]

    async def execute(self, *statements: str) -> list[str]:
        """Run statements, each in a transaction, through the Service of the primary; return the rows."""
        secret = await self._client.get(Secret, f"{self._name}-app")
        host = str((await self._client.get(Service, f"{self._name}-rw")).spec.cluster_ip)
        data = {name: value.decode() for name, value in (secret.data or {}).items()}
        login = Login(data["username"], data["password"], data["database"])
        async with asyncio.timeout(LIMIT):
            while True:
                code, rows, error = await query(host, login, "".join(f"{one};\n" for one in statements))
                if code == 0:
                    return rows
                assert "Can't connect" in error, error  # a Service follows its pods with a delay
                await asyncio.sleep(0.2)


async def archive_log(client: Client, pod: str) -> None:
    """Let the primary begin a new file of its log, and wait until everything before is archived."""

    async def run(command: str, stdin: bytes = b"") -> str:
        result = await client.exec(pod, ["sh", "-c", command], container="database", stdin=stdin)
        assert result.exit_code == 0, result.stderr
        return result.stdout.decode()

    started = datetime.now(UTC)
    await run(CLIENT, b"FLUSH BINARY LOGS;")
    async with asyncio.timeout(LIMIT):
        while not _is_archived(await run('cat "$DATA/archive.json" 2>/dev/null || true'), started):  # noqa: ASYNC110
            await asyncio.sleep(0.2)


def _is_archived(state: str, since: datetime) -> bool:
    found: dict[str, str] = json.loads(state or "{}")
    return bool(found.get("archived")) and datetime.fromisoformat(found["archived"]) >= since


async def restore_mariadb(client: Client, name: str, recovery: dict[str, Any], **spec: Any) -> Database:
    """Create a database of one member with a recovery; return it when it is ready, or has failed."""
    return await restore(client, name, recovery, **{"engine": "mariadb", "version": "10.11", **spec})
