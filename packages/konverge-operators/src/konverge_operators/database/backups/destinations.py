"""Where backups are, as containers see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from konverge_operators.database.api import Database, Destination
from konverge_operators.database.backups.api import Location
from konverge_operators.database.names import backup_claim
from konverge_operators.manifests import Json, secret_variable

__all__ = ["DIRECTORY", "Access", "access_to", "archive_path", "destination_of", "location_of", "root_of"]

DIRECTORY: Final = "/backup"
_VOLUME: Final = "backup"


@dataclass(frozen=True)
class Access:
    """What a container needs to reach a destination."""

    env: list[Json] = field(default_factory=list)
    mounts: list[Json] = field(default_factory=list)
    volumes: list[Json] = field(default_factory=list)


def location_of(database: Database, version: str, major: str) -> Location:
    """Return where the backups of a database in a version are, and of which major that is.

    Another object of its name writes elsewhere.
    """
    return Location(
        destination=destination_of(database),
        path=archive_path(root_of(database), major),
        engine=database.spec.engine,
        version=version,
        wal=database.spec.backup.wal,
    )


def destination_of(database: Database) -> Destination:
    return database.spec.backup.destination or Destination(claim=backup_claim(database))


def root_of(database: Database) -> str:
    """Return the directory of one Database below its destination."""
    return f"{database.name}/{database.uid}"


def archive_path(root: str, major: str) -> str:
    """Return the directory of a major version: after an upgrade the log starts anew, with the same names."""
    return f"{root}/{major}"


def access_to(destination: Destination, path: str) -> Access:
    """Return what leads to a path below a destination. The keys of a bucket come from their Secret."""
    found: list[Json] = [{"name": "ARCHIVE_PATH", "value": path}]
    if destination.s3 is None:
        volume = {"name": _VOLUME, "persistentVolumeClaim": {"claimName": destination.claim}}
        mount = {"name": _VOLUME, "mountPath": DIRECTORY}
        return Access([{"name": "ARCHIVE_URL", "value": f"file://{DIRECTORY}"}, *found], [mount], [volume])
    s3 = destination.s3
    values = {
        "ARCHIVE_URL": f"s3://{s3.bucket}/{s3.prefix.strip('/')}",
        "ARCHIVE_ENDPOINT": s3.endpoint,
        "ARCHIVE_REGION": s3.region,
    }
    env = [{"name": name, "value": value} for name, value in values.items()]
    keys = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")
    secret = [secret_variable(f"ARCHIVE_{key}", s3.secret_name, f"AWS_{key}") for key in keys]
    return Access([*env, *secret, *found])
