"""What is known of the backups of a Database: its status, the condition Backup, and the metrics."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from prometheus_client import Gauge
from prometheus_client.registry import Collector

from konverge import Context, Key
from konverge_operators.database.api import Database, LastBackup
from konverge_operators.database.backups.api import BackupPhase, DatabaseBackup
from konverge_operators.database.backups.destinations import archive_path, root_of
from konverge_operators.database.backups.retention import good_backups
from konverge_operators.database.engine import ArchiveState, Engine, EngineError, Target
from konverge_operators.database.facts import Facts

__all__ = ["ArchiveStates", "BackupMetrics", "set_backup_status"]

_INTERVAL: Final = timedelta(seconds=20)
_LABELS: Final = ("namespace", "database")


class ArchiveStates:
    """The states of archived logs. Each is observed now and then: it needs a query in a member."""

    def __init__(self) -> None:
        self._states: dict[Key, tuple[datetime, ArchiveState]] = {}

    async def observe(self, target: Target, engine: Engine, facts: Facts) -> ArchiveState:
        """Return the state of the log of a database; nothing is known without a primary."""
        backup, key = target.database.spec.backup, target.database.key
        if not (backup.enabled and backup.wal and facts.primary):
            return ArchiveState()
        before = self._states.get(key)
        if before is not None and facts.now - before[0] < _INTERVAL:
            return before[1]
        try:
            found = await engine.observe_archive(target)
        except EngineError as error:
            found = ArchiveState(before[1].archived_at if before is not None else None, str(error))
        self._states[key] = facts.now, found
        return found

    def forget(self, key: Key) -> None:
        self._states.pop(key, None)


class BackupMetrics:
    """Gauges of each database with backups. Its age is `time() - database_backup_timestamp_seconds`."""

    def __init__(self) -> None:
        self.time = Gauge("database_backup_timestamp_seconds", "End of the last good backup", _LABELS, registry=None)
        self.size = Gauge("database_backup_size_bytes", "Size of the last good backup", _LABELS, registry=None)
        self.duration = Gauge(
            "database_backup_duration_seconds", "Duration of the last good backup", _LABELS, registry=None
        )
        self.failed = Gauge(
            "database_backup_failed", "Whether the last backup that has ended failed", _LABELS, registry=None
        )
        self.archive_failed = Gauge(
            "database_archive_failed", "Whether the log cannot be archived", _LABELS, registry=None
        )

    @property
    def collectors(self) -> tuple[Collector, ...]:
        return self.time, self.size, self.duration, self.failed, self.archive_failed

    def record(self, database: Database, facts: Facts) -> None:
        """Record what the status says; a database without backups has no series."""
        if not database.spec.backup.enabled:
            self.forget(database.key)
            return
        labels, last = (database.namespace, database.name), _last_of_any_version(database, facts)
        created = database.metadata.creation_timestamp
        self.time.labels(*labels).set((last.time or created or facts.now).timestamp())
        self.size.labels(*labels).set(last.size)
        self.duration.labels(*labels).set(last.duration)
        self.failed.labels(*labels).set(_last_ended(facts) is BackupPhase.FAILED)
        self.archive_failed.labels(*labels).set(bool(facts.archive.error))

    def forget(self, key: Key) -> None:
        for one in (self.time, self.size, self.duration, self.failed, self.archive_failed):
            one.remove_by_labels(dict(zip(_LABELS, (key.namespace, key.name), strict=True)))


def set_backup_status(database: Database, ctx: Context, facts: Facts) -> None:
    """Set the fields about backups, and the condition Backup."""
    path = archive_path(root_of(database), facts.major)
    own = [one for one in good_backups(facts.backups) if _path(one) == path]  # of this object, and of its major version
    status = database.status
    status.last_backup = _summary(own[-1]) if own else LastBackup()
    status.recoverable_from = own[0].status.completed if own else None
    status.recoverable_to = _recoverable_to(database, facts, own)
    reason, message = _condition(database, facts, own)
    ctx.condition(database, "Backup", reason == "Recoverable", reason=reason, message=message)


def _summary(backup: DatabaseBackup) -> LastBackup:
    status = backup.status
    assert status.completed is not None
    duration = round((status.completed - (status.started or status.completed)).total_seconds())
    return LastBackup(name=backup.name, time=status.completed, size=status.size, duration=duration)


def _last_of_any_version(database: Database, facts: Facts) -> LastBackup:
    """Return the last good backup. That of before a major upgrade counts until there is one of the new version."""
    root = f"{root_of(database)}/"
    own = [one for one in good_backups(facts.backups) if _path(one).startswith(root)]
    return _summary(own[-1]) if own else LastBackup()


def _path(backup: DatabaseBackup) -> str:
    return backup.status.location.path if backup.status.location is not None else ""


def _recoverable_to(database: Database, facts: Facts, own: list[DatabaseBackup]) -> datetime | None:
    """Return the last time that can be restored: at least the end of the newest backup."""
    if not own:
        return None
    times = [own[-1].status.completed, database.status.recoverable_to, facts.archive.archived_at]
    return max(one for one in times if one is not None)


def _condition(database: Database, facts: Facts, own: list[DatabaseBackup]) -> tuple[str, str]:
    backup = database.spec.backup
    if not backup.enabled:
        return "NotConfigured", "there are no backups"
    if facts.archive.error:
        return "ArchiveFailing", f"the log is not archived: {facts.archive.error}"
    if not own:
        found = f" of version {facts.major}" if good_backups(facts.backups) else ""
        return "NoBackup", f"there is no good backup{found} yet: it is made on schedule, or by a DatabaseBackup"
    if _last_ended(facts) is BackupPhase.FAILED:
        return "LastBackupFailed", f"the last good backup is {own[-1].name}"
    place = "" if backup.destination is not None else "; the claim is no protection against the loss of the cluster"
    return "Recoverable", f"{own[-1].name} is the last backup{place}"


def _last_ended(facts: Facts) -> BackupPhase | None:
    """Return how the newest backup that has ended did so."""
    ended = [one for one in facts.backups if one.status.phase in (BackupPhase.SUCCEEDED, BackupPhase.FAILED)]
    newest = max(ended, key=lambda one: str(one.metadata.creation_timestamp or ""), default=None)
    return newest.status.phase if newest is not None else None
