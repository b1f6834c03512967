"""Backups of MariaDB: the containers that back up, delete and restore, and what the primary says of its log.

The program is `konverge_operators.database.mariadb.archive`. It uses mariadb-dump, mariadb-binlog and a temporary
server of the image.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from konverge_operators.database.api import Database
from konverge_operators.database.engine import ArchiveState, EngineError, SecretNames
from konverge_operators.database.mariadb.configuration import REPLICATION, SUPERUSER, replication_rights
from konverge_operators.database.mariadb.logins import alternate_of, invalidate_login
from konverge_operators.database.mariadb.members import DATA
from konverge_operators.database.mariadb.versions import MAJORS, image
from konverge_operators.database.names import read_write_service
from konverge_operators.manifests import Json, secret_variable

__all__ = ["ARCHIVE_STATE", "backup_container", "deletion_container", "parse_state", "recovery_container"]

_PROGRAM: Final = '"$PYTHON" -m konverge_operators.database.mariadb.archive'
ARCHIVE_STATE: Final = 'cat "$DATA/archive.json" 2>/dev/null || true'
"""The command in a member whose output `parse_state` reads."""
_STALE: Final = timedelta(minutes=10)


def parse_state(output: str, now: datetime) -> ArchiveState:
    """Return what a member has written about the archived log; nothing before the first time.

    It archives every minute, also if nothing was written: a time that is old is an error.
    """
    if not output.strip():
        return ArchiveState()
    try:
        found: dict[str, Any] = json.loads(output)
        archived = datetime.fromisoformat(found["archived"]) if found["archived"] else None
        error = str(found["error"])
        if not error and archived is not None and now - archived > _STALE:
            error = f"nothing was archived since {archived.isoformat()}"
        return ArchiveState(archived, error)
    except (ValueError, KeyError, TypeError) as error:
        raise EngineError(f"archive.json: {output[:200]!r}") from error


def backup_container(database: Database, version: str, secrets: SecretNames) -> Json:
    """Return the container that writes a backup: it reads the primary."""
    host = read_write_service(database).upper().replace("-", "_")
    values = {
        "SOURCE_HOST": f"$({host}_SERVICE_HOST)",
        "SOURCE_USER": REPLICATION,
        "SOURCE_TLS": "true" if database.spec.tls.enabled else "false",
        "ARCHIVE_MAJOR": _major(version),
        "ARCHIVE_WAL": "true" if database.spec.backup.wal else "false",
    }
    password = secret_variable("MYSQL_PWD", secrets.replication, "password")
    return _container(version, "backup $(BACKUP_NAME)", [*_values(values), password])


def deletion_container(version: str) -> Json:
    return _container(version, "delete $(BACKUP_NAME)", [])


def recovery_container(database: Database, version: str, secrets: SecretNames) -> Json:
    """Return the container that restores: it sets the passwords of the Secrets, which the data does not have."""
    spec = database.spec
    target = spec.recovery.target_time if spec.recovery is not None else None
    values = {
        "RECOVERY_TARGET": target.astimezone(UTC).isoformat() if target is not None else "",
        "RECOVERY_MAJOR": _major(version),
        "RECOVERY_DATA": DATA,
        "RECOVERY_DATABASE": spec.database,
        "RECOVERY_OWNER": spec.owner,
        "RECOVERY_SCRIPT": restored_script(spec.owner),
    }
    passwords = {"SUPERUSER": secrets.superuser, "REPLICATION": secrets.replication, "APPLICATION": secrets.application}
    variables = [secret_variable(f"{name}_PASSWORD", secret, "password") for name, secret in passwords.items()]
    return _container(version, "restore", [*_values(values), *variables])


def restored_script(owner: str) -> str:
    """Return the script that sets the passwords of restored data; the program puts their hashes in."""
    return f"""\
ALTER USER '{SUPERUSER}'@'localhost' IDENTIFIED BY PASSWORD '$SUPERUSER_HASH';
CREATE OR REPLACE USER '{REPLICATION}'@'%' IDENTIFIED BY PASSWORD '$REPLICATION_HASH';
{replication_rights()}
ALTER USER '{owner}'@'%' IDENTIFIED BY PASSWORD '$APPLICATION_HASH' ACCOUNT UNLOCK;
{invalidate_login(alternate_of(owner))}"""


def _major(version: str) -> str:
    return next(one.name for one in MAJORS if version == one.name or version.startswith(f"{one.name}."))


def _container(version: str, command: str, env: list[Json]) -> Json:
    return {"image": image(version), "command": ["sh", "-c", f"exec {_PROGRAM} {command}"], "env": env}


def _values(values: Mapping[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]
