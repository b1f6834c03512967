"""The kind DatabaseBackup: one backup of a Database."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from konverge import Condition, CustomResource, Meta, Spec, Status, field
from konverge.schema import AGE, IMMUTABLE, Column
from konverge_operators.database.api import Destination

__all__ = ["BackupPhase", "BackupSpec", "BackupStatus", "DatabaseBackup", "Location"]


class BackupPhase(StrEnum):
    """The phase of a backup. Succeeded means that it was written and verified; Failed is final."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class BackupSpec(Spec):
    """What to back up."""

    database: Annotated[str, Meta(min_length=1, max_length=253), IMMUTABLE]
    """The Database, in the same namespace."""
    retain: bool = False
    """Keep the data at the destination when this object is deleted. Retention deletes no such object."""


class Location(Spec):
    """Where the data of a backup is."""

    destination: Destination
    path: str = ""
    """Below the destination: the directory of one Database, with its backups and its log."""
    engine: str = "postgresql"
    version: str = ""
    """The version of the engine that wrote it."""
    wal: bool = True
    """Whether the log is archived beside it."""


class BackupStatus(Status):
    """The observed state of the backup. It is kept when the Job and the Database are gone."""

    phase: BackupPhase = BackupPhase.PENDING
    message: str = ""
    observed_generation: int = 0
    conditions: list[Condition] = field(default_factory=list)
    location: Location | None = None
    started: datetime | None = None
    completed: datetime | None = None
    size: int = 0
    """Bytes at the destination."""


class DatabaseBackup(
    CustomResource[BackupSpec, BackupStatus],
    group="example.com",
    version="v1",
    short_names=("dbb",),
    columns=(
        Column("Database", ".spec.database"),
        Column("Phase", ".status.phase"),
        Column("Size", ".status.size", type="integer"),
        Column("Completed", ".status.completed", type="date"),
        Column("Message", ".status.message", priority=1),
        AGE,
    ),
):
    """One backup of a database. Deleting it deletes its data, unless it is retained."""
