"""Clients of MariaDB under test: each is a `mariadb` of the package that the members need too."""

from __future__ import annotations

import asyncio
import os
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator
from contextlib import suppress
from typing import LiteralString

from database_load import ATTEMPT, Load, Login, Write

__all__ = ["MariaDBLoad", "new_client", "query"]

TABLE = "CREATE TABLE IF NOT EXISTS writes (client int, number int, PRIMARY KEY (client, number))"


async def new_client(host: str, login: Login, *further: str) -> Process:
    """Start a client. It prints the rows of each statement at once, and ends with the first error."""
    options = (
        "--no-defaults",
        f"--host={host}",
        f"--user={login.user}",
        "--protocol=tcp",
        "--connect-timeout=3",
        *further,
    )
    env = {**os.environ, "MYSQL_PWD": login.password}
    command = ("mariadb", *options, "--batch", "--unbuffered", "--skip-column-names", "--skip-reconnect")
    return await asyncio.create_subprocess_exec(*command, login.database, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env)


async def query(host: str, login: Login, statement: str, *further: str) -> tuple[int, list[str], str]:
    """Execute statements; return the exit code, the rows, and what went wrong. `further` are options of the client."""
    client = await new_client(host, login, *further)
    try:
        async with asyncio.timeout(2 * ATTEMPT):
            output, errors = await client.communicate(statement.encode())
    except TimeoutError:
        client.kill()
        return -1, [], "no answer"
    return client.returncode or 0, output.decode().splitlines(), errors.decode()


class MariaDBLoad(Load):
    """Clients that write through a Service, one row after the other."""

    async def prepare(self) -> None:
        await self._rows(TABLE)

    async def _rows(self, query_text: LiteralString) -> list[tuple[str, ...]]:
        async with asyncio.timeout(120):
            while True:
                code, rows, _ = await query(self.host, self.login, query_text)
                if code == 0:
                    return [tuple(row.split("\t")) for row in rows]
                await asyncio.sleep(0.2)

    async def _write(self, client: int) -> None:
        numbers = iter(range(1_000_000_000))
        while True:
            process = await new_client(self.host, self.login)
            try:
                await self._write_all(process, client, numbers)
            except (OSError, TimeoutError) as error:
                self.errors.append(str(error))
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
            await asyncio.sleep(0.05)

    async def _write_all(self, process: Process, client: int, numbers: Iterator[int]) -> None:
        """Write until the client ends: the row that it prints after an INSERT is the acknowledgement."""
        assert process.stdin is not None
        assert process.stdout is not None
        for number in numbers:
            self.attempted.add((client, number))
            started = time.monotonic()
            process.stdin.write(f"INSERT INTO writes VALUES ({client}, {number}); SELECT {number};\n".encode())
            async with asyncio.timeout(ATTEMPT):
                line = await process.stdout.readline()
            if line.strip() != str(number).encode():
                return
            self.acknowledged.append(Write(client, number, started, time.monotonic()))
            await asyncio.sleep(0.005)
