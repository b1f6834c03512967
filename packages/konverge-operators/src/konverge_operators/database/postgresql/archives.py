"""Backups of PostgreSQL: the settings that archive its log, and the containers that back up and restore.

The program is `konverge_operators.database.archive`, run by the interpreter of the image, which is in its variable
PYTHON. It uses pg_basebackup, pg_verifybackup and PostgreSQL's own recovery.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from konverge_operators.database.api import Database
from konverge_operators.database.engine import ArchiveState, EngineError, SecretNames
from konverge_operators.database.names import read_write_service
from konverge_operators.database.postgresql.configuration import REPLICATION, REWIND, SUPERUSER
from konverge_operators.database.postgresql.logins import alternate_of
from konverge_operators.database.postgresql.members import DATA, POSTGRES_PORT
from konverge_operators.manifests import Json, secret_variable

__all__ = [
    "ARCHIVER",
    "archive_parameters",
    "backup_container",
    "deletion_container",
    "parse_state",
    "recovery_container",
]

_PROGRAM: Final = '"$PYTHON" -m konverge_operators.database.archive'
_TIMEOUT: Final = 60
"""Seconds after which a file of the log is archived although it is not full: what a disaster may cost."""

ARCHIVER: Final = """\
SELECT json_build_object('archived', last_archived_time, 'failed', last_failed_time, 'file', last_failed_wal)
FROM pg_stat_archiver;
"""
"""The statement whose result `parse_state` reads."""


def archive_parameters(database: Database) -> dict[str, Any]:
    """Return the parameters that archive the log. Without backups it is discarded, so that no restart is needed."""
    backup = database.spec.backup
    command = f"{_PROGRAM} wal-put %p" if backup.enabled and backup.wal else "true"
    return {"archive_mode": "on", "archive_command": command, "archive_timeout": _TIMEOUT}


def parse_state(output: str) -> ArchiveState:
    """Return what pg_stat_archiver says. A failure counts until something is archived after it."""
    try:
        found: dict[str, str | None] = json.loads(output)
    except ValueError as error:
        raise EngineError(f"pg_stat_archiver: {output[:200]!r}") from error
    archived, failed = (_time(found[name]) for name in ("archived", "failed"))
    is_failing = failed is not None and (archived is None or failed > archived)
    problem = f"{found['file']} could not be archived at {failed}" if is_failing else ""
    return ArchiveState(archived, problem)


def backup_container(image: str, database: Database, secrets: SecretNames) -> Json:
    """Return the container that writes a backup: it connects to the primary as a replica does."""
    host = read_write_service(database).upper().replace("-", "_")
    values = {
        "PGHOST": f"$({host}_SERVICE_HOST)",
        "PGPORT": str(POSTGRES_PORT),
        "PGUSER": REPLICATION,
        "ARCHIVE_WAL": "true" if database.spec.backup.wal else "false",
    }
    password = secret_variable("PGPASSWORD", secrets.replication, "password")
    return _container(image, f"{_PROGRAM} backup $(BACKUP_NAME)", [*_values(values), password])


def deletion_container(image: str) -> Json:
    return _container(image, f"{_PROGRAM} delete $(BACKUP_NAME)", [])


def recovery_container(
    image: str, database: Database, version: str, secrets: SecretNames, settings: Mapping[str, Any]
) -> Json:
    """Return the container that restores: it sets the passwords of the Secrets, which the data does not have."""
    target = database.spec.recovery.target_time if database.spec.recovery is not None else None
    values = {
        "RECOVERY_TARGET": target.astimezone(UTC).isoformat() if target is not None else "",
        "RECOVERY_MAJOR": version.partition(".")[0],
        "RECOVERY_DATA": DATA,
        "RECOVERY_DATABASE": database.spec.database,
        "RECOVERY_SCRIPT": restored_script(database),
        "RECOVERY_SETTINGS": json.dumps(settings),
    }
    passwords = [
        secret_variable("SUPERUSER_PASSWORD", secrets.superuser, "password"),
        secret_variable("REPLICATION_PASSWORD", secrets.replication, "password"),
        secret_variable("APPLICATION_PASSWORD", secrets.application, "password"),
    ]
    return _container(image, f"{_PROGRAM} restore", [*_values(values), *passwords])


def restored_script(database: Database) -> str:
    """Return the script for restored data: it sets the passwords, then has the query that must succeed."""
    spec = database.spec
    lines = ["SET log_min_error_statement TO panic;"]
    roles = {
        SUPERUSER: "SUPERUSER_PASSWORD",
        REPLICATION: "REPLICATION_PASSWORD",
        REWIND: "REPLICATION_PASSWORD",
        spec.owner: "APPLICATION_PASSWORD",
    }
    for role, variable in roles.items():
        lines.append(f'\\set password `printf %s "${variable}"`')
        lines.append(f"ALTER ROLE \"{role}\" LOGIN PASSWORD :'password';")
    other = alternate_of(spec.owner)
    lines.append(f"SELECT 'ALTER ROLE \"{other}\" NOLOGIN' FROM pg_roles WHERE rolname = '{other}' \\gexec")
    lines.append(f'SET ROLE "{spec.owner}";')
    lines.append("SELECT 1 / (NOT pg_is_in_recovery())::int, count(*) FROM pg_class;")
    return "\n".join(lines)


def _container(image: str, command: str, env: list[Json]) -> Json:
    return {"image": image, "command": ["sh", "-c", f"exec {command}"], "env": env}


def _values(values: Mapping[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
