"""Clients of a PostgreSQL cluster under test: writers that record what was acknowledged, and a prober of all members.

Two checkers compare what the clients saw with the database:

- `Load.missing`: every acknowledged write is there. A cut connection leaves its write unknown, and so does a commit
  with the warning that the wait for synchronous replication was cancelled.
- `Prober.violations`: no two members acknowledge writes at the same time. A write carries the timeline that it was
  made on: each timeline belongs to one member, and no write of it starts after a write of a later one has ended.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, LiteralString

import psycopg

TABLES: tuple[LiteralString, ...] = (
    "CREATE TABLE IF NOT EXISTS writes (client int, number int, PRIMARY KEY (client, number))",
    "CREATE TABLE IF NOT EXISTS probes (number bigint)",
)
ATTEMPT = 5.0
"""How long one write may take before its client connects anew."""
_ERRORS = (psycopg.Error, OSError, TimeoutError)


@dataclass(frozen=True)
class Login:
    """Who connects, with what password, to which database."""

    user: str = "app"
    password: str = "secret"
    database: str = "app"

    async def connect(self, host: str) -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(
            host=host,
            user=self.user,
            password=self.password,
            dbname=self.database,
            autocommit=True,
            connect_timeout=3,
            sslmode="disable",
        )


@dataclass(frozen=True)
class Write:
    """An acknowledged write."""

    client: int
    number: int
    started: float
    ended: float


class Load:
    """Clients that write through a Service, one row after the other."""

    def __init__(self, host: str, login: Login) -> None:
        self.host = host
        self.login = login
        self.acknowledged: list[Write] = []
        self.attempted: set[tuple[int, int]] = set()
        self.errors: list[str] = []
        """What ended the connections of clients, but for those that gave up themselves after `ATTEMPT`."""

    async def prepare(self) -> None:
        """Create the tables, as soon as there is a leader."""
        for statement in TABLES:
            await self._rows(statement)

    @asynccontextmanager
    async def running(self, clients: int = 4) -> AsyncGenerator[None]:
        """Write until the block ends."""
        tasks = [asyncio.create_task(self._write(client)) for client in range(clients)]
        try:
            yield
        finally:
            await _cancel(tasks)

    async def progress(self) -> Write:
        """Wait for a write that starts from now on and is acknowledged; return it."""
        moment = time.monotonic()
        async with asyncio.timeout(180):
            while True:
                found = [one for one in self.acknowledged[-1000:] if one.started > moment]
                if found:
                    return found[0]
                await asyncio.sleep(0.02)

    def longest_gap(self, start: float, end: float) -> float:
        """Return the longest time without an acknowledged write between two moments."""
        times = [start, *(one.ended for one in self.acknowledged if start < one.ended < end), end]
        return max(second - first for first, second in pairwise(times))

    async def missing(self) -> list[tuple[int, int]]:
        """Return the acknowledged writes that the database lacks."""
        rows = await self._rows("SELECT client, number FROM writes")
        return self.missing_from({(int(client), int(number)) for client, number in rows})

    async def _rows(self, query: LiteralString) -> list[tuple[Any, ...]]:
        """Execute a statement as soon as there is a leader; return its rows."""
        async with asyncio.timeout(120):
            while True:
                with suppress(*_ERRORS):
                    async with await self.login.connect(self.host) as connection:
                        cursor = await connection.execute(query)
                        return await cursor.fetchall() if cursor.description else []
                await asyncio.sleep(0.2)

    def missing_from(self, rows: set[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the acknowledged writes that are not among the rows of a database.

        Raises: AssertionError when there are rows that nobody wrote.
        """
        assert rows <= self.attempted, "the database has rows that nobody wrote"
        written = [(one.client, one.number) for one in self.acknowledged]
        return [one for one in written if one not in rows]

    async def _write(self, client: int) -> None:
        numbers = iter(range(1_000_000_000))
        while True:
            try:
                async with await self.login.connect(self.host) as connection:
                    await self._write_rows(connection, client, numbers)
            except TimeoutError:
                pass
            except _ERRORS as error:
                self.errors.append(str(error))
            await asyncio.sleep(0.05)

    async def _write_rows(self, connection: psycopg.AsyncConnection[Any], client: int, numbers: Any) -> None:
        warnings: list[str] = []
        connection.add_notice_handler(lambda notice: warnings.append(notice.message_primary or ""))
        for number in numbers:
            self.attempted.add((client, number))
            started = time.monotonic()
            await _limited(connection, "INSERT INTO writes VALUES (%s, %s)", client, number)
            if is_acknowledged(warnings):
                self.acknowledged.append(Write(client, number, started, time.monotonic()))
            warnings.clear()
            await asyncio.sleep(0.005)


def is_acknowledged(warnings: list[str]) -> bool:
    """Report whether a commit with these warnings is acknowledged: not if it did not wait for a replica."""
    return not any("synchronous replication" in text for text in warnings)


@dataclass
class Probe:
    """An acknowledged write to one member."""

    member: str
    timeline: int
    started: float
    ended: float


@dataclass
class Prober:
    """Write to every member each 50 ms; `hosts` returns their addresses."""

    login: Login
    hosts: Callable[[], Mapping[str, str]]
    probes: list[Probe] = field(default_factory=list)

    @asynccontextmanager
    async def running(self, members: list[str]) -> AsyncGenerator[None]:
        """Probe until the block ends."""
        tasks = [asyncio.create_task(self._probe(member)) for member in members]
        try:
            yield
        finally:
            await _cancel(tasks)

    def violations(self) -> list[str]:
        """Return where two members acknowledged writes at the same time, one line each."""
        owners: dict[int, set[str]] = {}
        for one in self.probes:
            owners.setdefault(one.timeline, set()).add(one.member)
        found = [
            f"timeline {number} has writes of {sorted(names)}" for number, names in owners.items() if len(names) > 1
        ]
        latest: dict[int, float] = {}
        for one in sorted(self.probes, key=lambda probe: probe.ended):
            later = [number for number, ended in latest.items() if number > one.timeline and ended < one.started]
            if later:
                found.append(f"{one.member} wrote on timeline {one.timeline} after timeline {later[0]} had a write")
            latest.setdefault(one.timeline, one.ended)
        return found

    async def _probe(self, member: str) -> None:
        while True:
            with suppress(*_ERRORS, KeyError):  # the last one: a member that does not exist now
                async with await self.login.connect(self.hosts()[member]) as connection:
                    while True:
                        with suppress(psycopg.errors.ReadOnlySqlTransaction):  # a replica: it may lead soon
                            await self._write(connection, member)
                        await asyncio.sleep(0.05)
            await asyncio.sleep(0.05)

    async def _write(self, connection: psycopg.AsyncConnection[Any], member: str) -> None:
        query: LiteralString = (
            "INSERT INTO probes VALUES (1) RETURNING substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)"
        )
        started = time.monotonic()
        row = await (await _limited(connection, query)).fetchone()
        if row is not None:
            self.probes.append(Probe(member, int(row[0], 16), started, time.monotonic()))


async def _limited(connection: psycopg.AsyncConnection[Any], query: LiteralString, *values: int) -> Any:
    """Execute a statement; cut the connection if it takes too long, as a client does that gives up.

    Cancelling it would wait for an answer of the server.

    Raises: TimeoutError when it took too long; psycopg would say that the server closed the connection.
    """
    loop = asyncio.get_running_loop()
    timer = loop.call_later(ATTEMPT, _cut, connection)
    try:
        return await connection.execute(query, values)
    except psycopg.OperationalError as error:
        if timer.when() <= loop.time():
            raise TimeoutError(f"no answer within {ATTEMPT:.0f} s") from error
        raise
    finally:
        timer.cancel()


def _cut(connection: psycopg.AsyncConnection[Any]) -> None:
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    """End the tasks; more than once, because psycopg may raise an error of its own for a cancellation."""
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=1)
