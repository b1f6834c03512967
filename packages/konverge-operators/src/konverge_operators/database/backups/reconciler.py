"""The reconciler of DatabaseBackup: one Job writes it, another one deletes its data.

1. Where the data goes is in the status before the Job exists, so that a deletion finds it, also without the Database.
   A backup that has to wait until after a major upgrade goes to the path of the new version.
2. A Job that is missing is created again: it does nothing if the backup is complete.
3. The data of a backup is deleted only when its Job is gone. A Job of the schedule that was left would be taken for a
   new backup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from konverge import Context, NotFound, Reconciler, Result
from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Pod
from konverge.objects import now
from konverge_operators.database.api import Database
from konverge_operators.database.backups.api import BackupPhase, DatabaseBackup
from konverge_operators.database.backups.destinations import location_of
from konverge_operators.database.backups.jobs import (
    archive_path_of,
    backup_job,
    deletion_job,
    deletion_job_name,
    is_complete,
    is_failed,
    job_name,
    job_result,
)
from konverge_operators.database.engine import Engine
from konverge_operators.database.names import MANAGED_BY
from konverge_operators.database.versions import major_of, resolve_version

__all__ = ["BackupReconciler"]

_INTERVAL = 5.0
_RETRY = 60.0
_FINAL = (BackupPhase.SUCCEEDED, BackupPhase.FAILED)


class BackupReconciler(Reconciler[DatabaseBackup]):
    """Reconciles backups of databases of these engines, by name."""

    finalizer: ClassVar[str] = "example.com/backup"

    def __init__(self, engines: Mapping[str, Engine]) -> None:
        self._engines = engines

    async def reconcile(self, backup: DatabaseBackup, ctx: Context, /) -> Result:
        if backup.status.phase in _FINAL:
            return Result.done()
        job = await _find_job(backup, ctx, job_name(backup))
        if job is not None and backup.status.location is not None and (is_complete(job) or is_failed(job)):
            return await self._finish(backup, ctx, job)
        if job is not None and backup.status.location is not None:
            return await _report(backup, ctx, BackupPhase.RUNNING, "the backup is being written")
        return await self._start(backup, ctx, job)

    async def _start(self, backup: DatabaseBackup, ctx: Context, job: Job | None) -> Result:
        """Record where the data goes and create the Job, unless the schedule has done so."""
        database = await ctx.get(Database, backup.spec.database)
        if database is None or (job is None and _obstacle(database)):
            missing = f"there is no Database {backup.spec.database}"
            return await _report(backup, ctx, BackupPhase.PENDING, _obstacle(database) if database else missing)
        engine = self._engines[database.spec.engine]
        status = database.status
        version = resolve_version(engine.majors, status.version or status.upgrade.previous or database.spec.version)
        location, current = backup.status.location, location_of(database, version, major_of(engine.majors, version))
        current.path = (archive_path_of(job) if job is not None else "") or current.path
        if location is None or (job is None and location.path != current.path):
            backup.status.location = current
            backup.status.started = now()
            backup = await ctx.update_status(backup)
        if job is None:
            await ctx.create_once(backup_job(database, engine, version, backup))
            ctx.event("BackupStarted", f"the Job {job_name(backup)} writes it", action="Backup")
        return await _report(backup, ctx, BackupPhase.RUNNING, "the backup is being written")

    async def finalize(self, backup: DatabaseBackup, ctx: Context, /) -> Result:
        location = backup.status.location
        writer = await _find_job(backup, ctx, job_name(backup))
        if writer is not None:
            if writer.metadata.deletion_timestamp is None:
                await ctx.delete(writer, propagation="Foreground")
            return Result.requeue(after=_INTERVAL, reason="the Job that writes it is being deleted")
        if backup.spec.retain or location is None:
            if location is not None:
                ctx.event("DataRetained", f"kept: {location.path}/base/{job_name(backup)}", action="Delete")
            return Result.done()
        return await self._delete_data(backup, ctx)

    async def _delete_data(self, backup: DatabaseBackup, ctx: Context) -> Result:
        location = backup.status.location
        assert location is not None
        job = await _find_job(backup, ctx, deletion_job_name(backup))
        if job is None:
            await ctx.create_once(deletion_job(backup, location, self._engines[location.engine]))
            return Result.requeue(after=_INTERVAL, reason="the data is being deleted")
        if is_complete(job):
            ctx.event("DataDeleted", "the data is deleted", action="Delete")
            return Result.done()
        if not is_failed(job):
            return Result.requeue(after=_INTERVAL, reason="the data is being deleted")
        message = job_result(job, await ctx.list(Pod, labels=MANAGED_BY)).message
        ctx.event("DeletionFailed", message or "the Job failed", warning=True, action="Delete")
        backup.status.message = f"the data cannot be deleted: {message}; set spec.retain to keep it"
        await ctx.update_status(backup)
        await ctx.delete(job, propagation="Background")
        return Result.requeue(after=_RETRY, reason="the data cannot be deleted")

    async def _finish(self, backup: DatabaseBackup, ctx: Context, job: Job) -> Result:
        result = job_result(job, await ctx.list(Pod, labels=MANAGED_BY))
        if is_failed(job):
            ctx.event("BackupFailed", result.message or "the Job failed", warning=True, action="Backup")
            return await _report(backup, ctx, BackupPhase.FAILED, result.message or "the Job failed")
        backup.status.size = result.size
        backup.status.started = result.started or job.status.start_time or backup.status.started
        backup.status.completed = result.completed or job.status.completion_time or now()
        ctx.event("BackupSucceeded", f"{result.size} bytes, verified", action="Backup")
        return await _report(backup, ctx, BackupPhase.SUCCEEDED, "written and verified")


async def _find_job(backup: DatabaseBackup, ctx: Context, name: str) -> Job | None:
    """Return a Job from the server: a second one of an old cache would be wrong."""
    try:
        return await ctx.client.get(Job, name, namespace=backup.namespace)
    except NotFound:
        return None


def _obstacle(database: Database) -> str:
    """Return why a backup cannot start now, or ""."""
    if not database.spec.backup.enabled:
        return f"backup.enabled of the Database {database.name} is false"
    if database.spec.suspend:
        return f"the Database {database.name} is suspended"
    if database.status.upgrade.stage not in ("", "BackingUp"):
        return f"the Database {database.name} is being upgraded"
    return "" if database.status.primary else f"no member of {database.name} accepts writes"


async def _report(backup: DatabaseBackup, ctx: Context, phase: BackupPhase, message: str) -> Result:
    backup.status.phase, backup.status.message = phase, message
    ctx.set_ready(backup, phase is BackupPhase.SUCCEEDED, reason=phase.value, message=message)
    failed = phase is BackupPhase.FAILED
    ctx.condition(backup, "Stalled", failed, reason=phase.value, message=message if failed else "")
    ctx.condition(backup, "Reconciling", phase not in _FINAL, reason=phase.value, message=message)
    await ctx.update_status(backup)
    return Result.done() if phase in _FINAL else Result.requeue(after=_INTERVAL, reason=message)
