"""Dumps: one consistent state of all databases and users, as statements, verified by a load into a temporary server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from konverge_operators.database.archive.base_backups import (
    BaseBackup,
    Part,
    PartReader,
    delete_parts,
    find_backups,
    write_parts,
)
from konverge_operators.database.archive.stores import ArchiveError, Store
from konverge_operators.database.mariadb.archive.binary_logs import DOMAIN
from konverge_operators.database.mariadb.archive.logs import delete_older_logs
from konverge_operators.database.mariadb.archive.temporary_server import TemporaryServer, running_server

__all__ = ["delete_backup", "load", "verify_backup", "write_backup"]

_READ: Final = 1024 * 1024
_TAIL: Final = 4096
_POSITION: Final = re.compile(rb"^-- SET GLOBAL gtid_slave_pos='([0-9,-]*)';$", re.MULTILINE)
_COMPLETE: Final = re.compile(rb"^-- Dump completed", re.MULTILINE)
_DAMAGED: Final = "the backup is damaged"
_SYSTEM: Final = "('information_schema', 'performance_schema', 'mysql', 'sys')"
_DEFINITIONS: Final = f"""\
SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY 1;
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, CREATE_TIME FROM information_schema.TABLES
WHERE TABLE_SCHEMA NOT IN {_SYSTEM} ORDER BY 1, 2;
SELECT ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_TYPE, LAST_ALTERED FROM information_schema.ROUTINES
WHERE ROUTINE_SCHEMA NOT IN {_SYSTEM} ORDER BY 1, 2, 3;
SELECT TRIGGER_SCHEMA, TRIGGER_NAME, CREATED FROM information_schema.TRIGGERS
WHERE TRIGGER_SCHEMA NOT IN {_SYSTEM} ORDER BY 1, 2;
SELECT EVENT_SCHEMA, EVENT_NAME, LAST_ALTERED FROM information_schema.EVENTS ORDER BY 1, 2;
SELECT Host, User, MD5(Priv) FROM mysql.global_priv ORDER BY 1, 2;
SELECT COUNT(*) FROM mysql.db;
SELECT COUNT(*) FROM mysql.tables_priv;
"""
"""What a dump reads outside of its transaction: a change while it is written would be there, and in the log again."""


def write_backup(store: Store, path: str, name: str, work: Path, *, wal: bool) -> BaseBackup:
    """Write a dump of the server of the environment (SOURCE_HOST, ...), and verify it in the directory `work`.

    A rest of an interrupted try is deleted first.
    """
    done = [one for one in find_backups(store, path) if one.name == name]
    if done:
        return done[0]
    delete_parts(store, path, name)
    started = datetime.now(UTC)
    definitions = _definitions()
    parts = tuple(write_parts(store, f"{path}/base/{name}", ["mariadb-dump", *_connection(), *_dump()]))
    completed = datetime.now(UTC)
    if _definitions() != definitions:
        raise ArchiveError("tables or users were changed while the dump was written: it is repeated")
    position = str(_load_once(store, parts, work))
    found = BaseBackup(
        name=name,
        path=path,
        started=started,
        completed=completed,
        major=os.environ["ARCHIVE_MAJOR"],
        wal=wal,
        first=position,
        last=position,
        parts=parts,
    )
    store.put(f"{path}/base/{name}/backup.json", found.document())
    return found


def verify_backup(store: Store, backup: BaseBackup, work: Path) -> None:
    """Read a dump from its destination and load it: the checksum of each part, and each statement."""
    if str(_load_once(store, backup.parts, work)) != backup.first:
        raise ArchiveError(f"{_DAMAGED}: its position is not that of backup.json")


def delete_backup(store: Store, path: str, name: str) -> None:
    """Delete a dump, and the log that none of the others needs. Without another one all log is kept."""
    store.delete(f"{path}/base/{name}/backup.json")  # first: what is half deleted is no backup
    delete_parts(store, path, name)
    if kept := find_backups(store, path):
        delete_older_logs(store, path, min(int(one.first) for one in kept))


def load(store: Store, parts: Sequence[Part], server: TemporaryServer) -> int:
    """Load a dump into a server; return its position. One that is damaged, or not complete, is an ArchiveError."""
    reader, tail = PartReader(store, parts), b""
    with server.loading(_DAMAGED) as stream:
        while block := reader.read(_READ):
            stream.write(block)
            tail = (tail + block)[-_TAIL:]
    positions = _POSITION.findall(tail)
    if not positions or not _COMPLETE.search(tail):
        raise ArchiveError(f"{_DAMAGED}: it is not complete")
    return _number(positions[-1].decode())


def _load_once(store: Store, parts: Sequence[Part], work: Path) -> int:
    try:
        with running_server(work) as server:
            return load(store, parts, server)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _number(position: str) -> int:
    """Return the transaction of a position such as 1-1-42,2-1-7."""
    numbers = [one.split("-") for one in position.split(",") if one]
    return max((int(number) for domain, _, number in numbers if int(domain) == DOMAIN), default=0)


def _connection() -> list[str]:
    """Return how the server is reached; the password is in MYSQL_PWD."""
    options = [f"--host={os.environ['SOURCE_HOST']}", f"--user={os.environ['SOURCE_USER']}", "--protocol=tcp"]
    return ["--no-defaults", *options, *(["--ssl"] if os.environ.get("SOURCE_TLS") == "true" else [])]


def _dump() -> list[str]:
    """Return the options of a dump: a transaction that sees one state, and blocks nobody."""
    position = ["--single-transaction", "--master-data=2", "--gtid"]
    content = ["--all-databases", "--ignore-database=mysql", "--ignore-database=sys", "--system=users"]
    objects = ["--routines", "--events", "--triggers", "--dump-history"]
    return [*position, *content, *objects, "--hex-blob", "--max-allowed-packet=1G"]


def _definitions() -> bytes:
    command = ["mariadb", *_connection(), "--batch", "--skip-column-names"]
    done = subprocess.run(command, input=_DEFINITIONS.encode(), capture_output=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if "ERROR" in line]
        raise ArchiveError(f"the server cannot be read: {'; '.join(lines[-3:])}")
    return done.stdout
