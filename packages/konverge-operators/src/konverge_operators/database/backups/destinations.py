"""Where backups are, as containers see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from konverge_operators.database.api import Database, Destination
from konverge_operators.database.backups.api import Location
from konverge_operators.database.names import backup_claim
from konverge_operators.manifests import Json, secret_variable

__all__ = ["DIRECTORY", "Access", "access_to", "location_of"]

DIRECTORY: Final = "/backup"
_VOLUME: Final = "backup"


@dataclass(frozen=True)
class Access:
    """What a container needs to reach a destination."""

    env: list[Json] = field(default_factory=list)
    mounts: list[Json] = field(default_factory=list)
    volumes: list[Json] = field(default_factory=list)


def location_of(database: Database, version: str) -> Location:
    """Return where the backups of a database are. Another object of its name writes elsewhere."""
    backup = database.spec.backup
    return Location(
        destination=backup.destination or Destination(claim=backup_claim(database)),
        path=f"{database.name}/{database.uid}",
        engine=database.spec.engine,
        version=version,
        wal=backup.wal,
    )


def access_to(destination: Destination, path: str | Json) -> Access:
    """Return what leads to a path below a destination; the path may be a reference, as `valueFrom`.

    The keys of a bucket come from their Secret.
    """
    found: list[Json] = [{"name": "ARCHIVE_PATH", **({"value": path} if isinstance(path, str) else path)}]
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
