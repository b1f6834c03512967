"""Statements on a real MariaDB: members killed while one changes a table, and those that create the users."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path

import pytest

from konverge.k8s.core.v1 import Pod, Service
from konverge_operators.database.mariadb.archive.passwords import fill_passwords
from konverge_operators.database.mariadb.configuration import options, script
from konverge_operators.database.mariadb.member.positions import NO_UUID
from konverge_operators.database.mariadb.member.server import Address, Server
from mariadb_load import new_client, query
from running_databases import NAME
from running_mariadb import MISSING, RunningMariaDB, running_mariadb

pytestmark = [
    pytest.mark.engines,
    pytest.mark.real_time(limit=900),
    pytest.mark.plain_loop,
    pytest.mark.skipif(bool(MISSING), reason="needs MariaDB: apt-get install mariadb-server galera-4 rsync"),
]

ROWS = 400_000
FILL = (
    "CREATE TABLE numbers (number int PRIMARY KEY, text varchar(200)); INSERT INTO numbers"
    f" SELECT seq, repeat('x', 200) FROM seq_1_to_{ROWS};"
)
CHANGE = "ALTER TABLE numbers ADD COLUMN IF NOT EXISTS further varchar(100) DEFAULT 'y', FORCE, ALGORITHM=COPY;"


async def state_of(database: RunningMariaDB, member: str) -> str:
    command = ["sh", "-c", 'cat "$DATA/data/grastate.dat"']
    return (await database.client.exec(member, command, container="database")).stdout.decode()


async def run(database: RunningMariaDB, statement: str) -> list[str]:
    """Execute a statement as soon as somebody does."""
    host = str((await database.client.get(Service, f"{NAME}-rw")).spec.cluster_ip)
    async with asyncio.timeout(120):
        while True:
            code, rows, _ = await query(host, await database.login(), statement)
            if code == 0:
                return rows
            await asyncio.sleep(0.2)


async def while_a_table_changes(database: RunningMariaDB, members: list[str]) -> None:
    """Fill a table, change it as often as it takes, and return while the members have no position."""
    await run(database, FILL)
    async with asyncio.timeout(120):
        while not await seen_without_position(database, members):
            pass


async def seen_without_position(database: RunningMariaDB, members: list[str]) -> bool:
    """Change the table; report whether the members were seen without a position before the end of the statement."""
    host = str((await database.client.get(Service, f"{NAME}-rw")).spec.cluster_ip)
    client = await new_client(host, await database.login())
    assert client.stdin is not None
    client.stdin.write(CHANGE.encode())
    client.stdin.close()
    while client.returncode is None:
        if all([NO_UUID in await state_of(database, one) for one in members]):
            return True
    return False


@pytest.mark.parametrize(
    "password", ["it's", 'a "b" \\', "ünï ☃", "two\nlines", "$APPLICATION_PASSWORD", "*" + 40 * "0"]
)
def test_a_password_may_have_any_characters(password: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
    names = ("SUPERUSER_PASSWORD", "REPLICATION_PASSWORD", "APPLICATION_PASSWORD")
    passwords = dict.fromkeys(names, password)
    (tmp_path / "my.cnf").write_text(f"{options({})}user = root\n")
    server = Server(Address("db-0", "db", "127.0.0.1", tmp_path, str(tmp_path / "my.cnf"), ""), passwords)
    server.initialize(fill_passwords(script("app", "keeper"), passwords), lambda: None)
    command = ["mariadbd", f"--defaults-file={tmp_path / 'my.cnf'}", f"--datadir={tmp_path / 'data'}"]
    arguments = ["--skip-networking", "--socket=./mariadb.sock", f"--pid-file={tmp_path / 'pid'}"]
    with subprocess.Popen([*command, *arguments], stderr=subprocess.DEVNULL) as running:
        try:
            for user in ("root", "keeper", "replication"):
                assert answer_of(tmp_path / "data", user, password) == "1\n"
        finally:
            running.kill()


def answer_of(data: Path, user: str, password: str) -> str:
    """Connect as soon as the server listens, and return what it answers."""
    command = ["mariadb", "--no-defaults", "--socket=./mariadb.sock", f"--user={user}", "-BN", "--execute=SELECT 1"]
    env = {"MYSQL_PWD": password, "PATH": "/usr/bin:/bin"}
    for _ in range(200):
        done = subprocess.run(command, cwd=data, env=env, capture_output=True, text=True, check=False)
        if "2002" not in done.stderr:
            return done.stdout or done.stderr
        time.sleep(0.1)
    return "the server does not listen"


@pytest.mark.parametrize("replicas", [1, 3])
async def test_all_members_killed_while_a_table_changes_come_back_with_their_data(replicas: int) -> None:
    async with running_mariadb(replicas=replicas) as database:
        await database.wait_for_members(replicas)
        await while_a_table_changes(database, [f"{NAME}-{number}" for number in range(replicas)])
        await database.kill_all()
        assert await run(database, "SELECT count(*) FROM numbers;") == [str(ROWS)]
        await database.wait_for_members(replicas)
        await run(database, "INSERT INTO numbers (number) VALUES (0);")
        await all_have(database, ROWS + 1)


async def test_a_replica_killed_while_a_table_changes_fetches_all_data() -> None:
    async with running_mariadb() as database:
        await database.wait_for_members(3)
        primary = await database.primary()
        replica = next(pod.name for pod in await database.client.list(Pod) if pod.name != primary)
        await while_a_table_changes(database, [replica])
        await database.kill(replica)
        await database.wait(lambda one: one.status.ready_replicas < 3)
        await database.wait_for_members(3)
        await run(database, "SELECT further FROM numbers LIMIT 1;")
        await all_have(database, ROWS)


async def all_have(database: RunningMariaDB, rows: int) -> None:
    """Check that each member has as many rows, and the same table."""
    login, tables = await database.login(), set[str]()
    for address in database.addresses_of(await database.client.list(Pod)).values():
        statement = "SET SESSION wsrep_sync_wait = 1; SELECT count(*) FROM numbers; CHECKSUM TABLE numbers;"
        code, found, error = await query(address, login, statement)
        assert (code, found[0]) == (0, str(rows)), error
        tables.add(found[1])
    assert len(tables) == 1
