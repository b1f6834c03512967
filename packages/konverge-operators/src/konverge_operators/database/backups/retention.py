"""Which backups are not needed any more: a pure function of the backups and the time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from konverge_operators.database.backups.api import BackupPhase, DatabaseBackup

__all__ = ["expired_backups", "good_backups", "parse_retention"]

_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def parse_retention(text: str) -> timedelta:
    """Return the duration of a text such as 7d."""
    return int(text[:-1]) * _UNITS[text[-1]]


def good_backups(backups: Sequence[DatabaseBackup]) -> list[DatabaseBackup]:
    """Return the backups that can be restored, the oldest first. One that is being deleted is none."""
    good = [
        one
        for one in backups
        if one.status.phase is BackupPhase.SUCCEEDED
        and one.status.completed is not None
        and one.metadata.deletion_timestamp is None
    ]
    return sorted(good, key=lambda one: (one.status.completed, one.name))


def expired_backups(backups: Sequence[DatabaseBackup], retention: timedelta, now: datetime) -> list[DatabaseBackup]:
    """Return the backups to delete.

    Any time within the retention can be restored afterwards: the newest good backup from before it is kept, so the last
    good one always is. A backup that is retained is never deleted; one that failed is, when it is old.
    """
    limit = now - retention
    early = [one for one in good_backups(backups) if one.status.completed is not None and one.status.completed <= limit]
    failed = [
        one
        for one in backups
        if one.status.phase is BackupPhase.FAILED
        and one.metadata.deletion_timestamp is None
        and one.metadata.creation_timestamp is not None
        and one.metadata.creation_timestamp <= limit
    ]
    return [one for one in (*early[:-1], *failed) if not one.spec.retain]
