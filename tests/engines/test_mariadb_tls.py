"""TLS of a Database with MariaDB: clients, replication, transfers of all data, and a renewed certificate."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import ssl
from asyncio import StreamReader, StreamWriter
from pathlib import Path

import pytest

from database_backups import back_up
from database_load import Login
from konverge.k8s.core.v1 import ConfigMap, Pod, Secret, Service
from konverge_operators.database.api import Phase
from konverge_operators.database.backups.api import BackupPhase
from konverge_operators.database.mariadb.members import CLIENT
from mariadb_backups import restore_mariadb
from mariadb_load import new_client, query
from running_databases import NAME
from running_mariadb import MISSING, RunningMariaDB, running_mariadb

pytestmark = [
    pytest.mark.engines,
    pytest.mark.real_time(limit=600),
    pytest.mark.plain_loop,
    pytest.mark.skipif(bool(MISSING), reason="needs MariaDB: apt-get install mariadb-server galera-4 rsync stunnel4"),
    pytest.mark.skipif(shutil.which("stunnel") is None, reason="needs stunnel: apt-get install stunnel4"),
]

MARIADB, GALERA = 3306, 4567
REQUEST = (32).to_bytes(3, "little") + b"\1" + (0x8AA00).to_bytes(4, "little") + bytes(28)
"""The packet by which a client asks for TLS: after the greeting, before its name."""


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def open_tls(address: str, port: int, context: ssl.SSLContext, name: str | None = None) -> StreamWriter:
    """Connect to a member with TLS, as a client of MariaDB or as another member."""
    reader, writer = await asyncio.open_connection(address, port)
    if port == MARIADB:
        await read_greeting(reader)
        writer.write(REQUEST)
    await writer.start_tls(context, server_hostname=name)
    return writer


async def read_greeting(reader: StreamReader) -> None:
    head = await reader.readexactly(4)
    await reader.readexactly(int.from_bytes(head[:3], "little"))


async def served_digest(address: str, port: int) -> str:
    """Return the SHA-256 of the certificate that a member serves to a new connection."""
    writer = await open_tls(address, port, unverified())
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return hashlib.sha256(ssl.DER_cert_to_PEM_cert(certificate).encode()).hexdigest()


async def served_digests(database: RunningMariaDB) -> set[str]:
    addresses = database.addresses_of(await database.client.list(Pod)).values()
    return {await served_digest(address, port) for address in addresses for port in (MARIADB, GALERA)}


def logged(database: RunningMariaDB, member: str) -> str:
    return database.cluster.log(member, "database", database.restarts(member))


async def start_time(database: RunningMariaDB, member: str) -> str:
    """Return when the server of a member was started."""
    command = ["sh", "-c", f"echo \"SHOW GLOBAL STATUS LIKE 'Uptime'; SELECT UNIX_TIMESTAMP();\" | ({CLIENT})"]
    result = await database.client.exec(member, command, container="database")
    uptime, now = result.stdout.decode().split()[1:]
    return str(round((int(now) - int(uptime)) / 5))


async def test_clients_and_members_use_tls_and_a_renewed_certificate_needs_no_restart(tmp_path: Path) -> None:
    async with running_mariadb(tls={"enabled": True}, backup={"enabled": True}) as database:
        await database.wait_for_members(3)
        before = (await database.wait(lambda one: bool(one.status.certificate))).status.certificate
        login, client = await database.login(), database.client
        host = str((await client.get(Service, f"{NAME}-rw")).spec.cluster_ip)
        code, _, refused = await query(host, login, "SELECT 1;", "--skip-ssl")
        assert (code, refused[:10]) == (1, "ERROR 1045"), refused
        assert await query(host, login, "SELECT 1;", "--ssl") == (0, ["1"], "")
        file = tmp_path / "ca.crt"
        file.write_text((await client.get(ConfigMap, f"{NAME}-ca")).data["ca.crt"])
        verified = ssl.create_default_context(cafile=str(file))
        (await open_tls(host, MARIADB, verified, f"{NAME}-rw")).close()
        uri = (await client.get(Secret, f"{NAME}-app")).data["uri"].decode()
        assert uri.endswith("?ssl-mode=REQUIRED")

        assert await served_digests(database) == {before}
        await nobody_joins_without_a_certificate(database)
        assert "Using stunnel for SSL encryption" in logged(database, f"{NAME}-2")

        pods = {pod.name: (pod.uid, database.restarts(pod.name)) for pod in await client.list(Pod)}
        started = {name: await start_time(database, name) for name in pods}
        connection = await new_client(host, login, "--ssl")
        assert connection.stdin is not None
        assert connection.stdout is not None
        connection.stdin.write(b"SHOW STATUS LIKE 'Ssl_version';\n")
        assert (await connection.stdout.readline()).startswith(b"Ssl_version\tTLSv1.")

        await client.patch(Secret, f"{NAME}-tls", {"stringData": {"tls.crt": "none"}})  # as if it had expired
        after = (await database.wait(lambda one: one.status.certificate not in ("", before))).status.certificate

        assert await served_digests(database) == {after}
        connection.stdin.write(
            b"CREATE TABLE notes (number int PRIMARY KEY); INSERT INTO notes VALUES (7); SELECT 1;\n"
        )
        assert await connection.stdout.readline() == b"1\n"
        connection.kill()
        await connection.wait()
        assert {pod.name: (pod.uid, database.restarts(pod.name)) for pod in await client.list(Pod)} == pods
        assert {name: await start_time(database, name) for name in pods} == started

        await database.kill(f"{NAME}-2")  # it joins with the renewed certificate
        await database.wait_for_members(3)
        assert await query(host, login, "SELECT number FROM notes;", "--ssl") == (0, ["7"], "")
        await backups_use_tls_too(database)


async def backups_use_tls_too(database: RunningMariaDB) -> None:
    """A Job that makes a backup is a client like others; a restored database has a certificate of its own."""
    client = database.client
    backup = await back_up(client, NAME, "first")
    assert backup.status.phase is BackupPhase.SUCCEEDED, backup.status
    copy = await restore_mariadb(client, "copy", {"fromBackup": "first"}, tls={"enabled": True})
    assert copy.status.phase is Phase.READY, copy.status
    secret = {name: value.decode() for name, value in (await client.get(Secret, "copy-app")).data.items()}
    login = Login(secret["username"], secret["password"], secret["database"])
    host = str((await client.get(Service, "copy-rw")).spec.cluster_ip)
    assert await query(host, login, "SELECT number FROM notes;", "--ssl") == (0, ["7"], "")


async def nobody_joins_without_a_certificate(database: RunningMariaDB) -> None:
    """A connection to the port of replication ends when its side shows no certificate."""
    address = database.addresses_of(await database.client.list(Pod))[f"{NAME}-0"]
    reader, writer = await asyncio.open_connection(address, GALERA, ssl=unverified())
    with pytest.raises((ssl.SSLError, ConnectionError)):
        async with asyncio.timeout(10):
            while await reader.read(1000):
                pass
            raise ConnectionResetError("closed")
    writer.close()
