"""TLS of a Database on a PostgreSQL that has it: Debian's package (`apt-get install postgresql`)."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from pathlib import Path
from typing import Any

import psycopg
import pytest

from konverge.k8s.core.v1 import ConfigMap, Pod, Secret, Service
from konverge_operators.database.postgresql.local_images import system_installations
from konverge_operators.database.postgresql.members import PSQL
from running_databases import NAME, RunningDatabase, running_database

pytestmark = [
    pytest.mark.engines,
    pytest.mark.real_time(limit=600),
    pytest.mark.plain_loop,
    pytest.mark.skipif(not system_installations(), reason="needs a PostgreSQL with TLS: apt-get install postgresql"),
]

SECRET, AUTHORITIES = f"{NAME}-tls", f"{NAME}-ca"


class Clients:
    """Connections to a database, as an application would make them with what the operator provides."""

    def __init__(self, database: RunningDatabase, directory: Path) -> None:
        self.database = database
        self.file = directory / "ca.crt"

    async def connect(self, **options: Any) -> psycopg.AsyncConnection[Any]:
        """Connect by the name of the Service, which the certificate has; its address is known here only."""
        client = self.database.client
        secret = {name: value.decode() for name, value in (await client.get(Secret, f"{NAME}-app")).data.items()}
        self.file.write_text((await client.get(ConfigMap, AUTHORITIES)).data["ca.crt"])
        service = await client.get(Service, f"{NAME}-rw")
        known = {"hostaddr": str(service.spec.cluster_ip), "sslrootcert": str(self.file)}
        return await psycopg.AsyncConnection.connect(
            secret["uri"], autocommit=True, **{**known, "sslmode": "verify-full", **options}
        )


async def replication_is_encrypted(database: RunningDatabase) -> str:
    """Return what the primary says of the connections of its replicas."""
    query = "SELECT count(*), bool_and(ssl) FROM pg_stat_replication JOIN pg_stat_ssl USING (pid)"
    command = ["sh", "-c", f'{PSQL} --tuples-only --no-align --command="{query}"']
    result = await database.client.exec(await database.primary(), command, container="database")
    assert result.exit_code == 0, result.stderr
    return result.stdout.decode().strip()


async def served_digests(database: RunningDatabase) -> set[str]:
    """Return the SHA-256 of the certificate that each member serves to a new connection."""
    return {await served_digest(str(pod.status.pod_ip)) for pod in await database.client.list(Pod)}


async def served_digest(address: str) -> str:
    """Ask a server for TLS as PostgreSQL's protocol does, and return the SHA-256 of its certificate."""
    reader, writer = await asyncio.open_connection(address, 5432)
    writer.write((8).to_bytes(4, "big") + (80877103).to_bytes(4, "big"))
    assert await reader.readexactly(1) == b"S"
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    await writer.start_tls(context)
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return hashlib.sha256(ssl.DER_cert_to_PEM_cert(certificate).encode()).hexdigest()


async def scalar(connection: psycopg.AsyncConnection[Any], query: Any) -> Any:
    row = await (await connection.execute(query)).fetchone()
    return row[0] if row else None


async def test_clients_and_replicas_use_tls_and_a_renewed_certificate_needs_no_restart(tmp_path: Path) -> None:
    version = next(iter(system_installations()))
    async with running_database(version=version, replicas=2, synchronous="on", tls={"enabled": True}) as database:
        await database.wait_for_members(2)
        before = (await database.wait(lambda one: bool(one.status.certificate))).status.certificate
        clients = Clients(database, tmp_path)
        open_connection = await clients.connect()
        assert await scalar(open_connection, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        with pytest.raises(psycopg.OperationalError, match="no encryption"):
            await clients.connect(sslmode="disable")
        assert await replication_is_encrypted(database) == "1|t"
        assert await served_digests(database) == {before}
        started = await scalar(open_connection, "SELECT pg_postmaster_start_time()")
        pods = {pod.name: (pod.uid, database.restarts(pod.name)) for pod in await database.client.list(Pod)}

        await database.client.patch(Secret, SECRET, {"stringData": {"tls.crt": "none"}})  # as if it had expired
        after = (await database.wait(lambda one: one.status.certificate not in ("", before))).status.certificate

        assert await served_digests(database) == {after}
        assert await scalar(open_connection, "SELECT pg_postmaster_start_time()") == started
        await open_connection.execute("CREATE TABLE notes (text text)")
        async with await clients.connect() as connection:
            assert await scalar(connection, "SELECT count(*) FROM notes") == 0
        await open_connection.close()
        await database.wait_for_members(2)
        assert await replication_is_encrypted(database) == "1|t"
        found = {pod.name: (pod.uid, database.restarts(pod.name)) for pod in await database.client.list(Pod)}
        assert found == pods
