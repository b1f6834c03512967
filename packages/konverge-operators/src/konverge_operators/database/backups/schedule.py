"""The schedule of a Database: its CronJob, the backups that it has started, and those that are not needed any more."""

from __future__ import annotations

from konverge import Context, NotFound
from konverge.errors import AlreadyExists
from konverge.k8s.batch.v1 import CronJob, Job
from konverge.k8s.core.v1 import PersistentVolumeClaim
from konverge.objects import ObjectMeta, Quantity
from konverge_operators.database.api import Database
from konverge_operators.database.backups.api import BackupSpec, DatabaseBackup
from konverge_operators.database.backups.jobs import backup_selector, cron_job
from konverge_operators.database.backups.retention import expired_backups, parse_retention
from konverge_operators.database.engine import Engine
from konverge_operators.database.facts import Facts
from konverge_operators.database.names import backup_claim, backup_labels, cron_job_name
from konverge_operators.manifests import child

__all__ = ["apply_schedule", "backups_of", "delete_expired"]


async def backups_of(database: Database, ctx: Context) -> tuple[DatabaseBackup, ...]:
    """Return the backups of a database."""
    found = await ctx.list(DatabaseBackup)
    return tuple(one for one in found if one.spec.database == database.name)


async def apply_schedule(database: Database, ctx: Context, engine: Engine, version: str) -> None:
    """Bring the claim and the CronJob to the spec, and create the objects of the backups that it has started."""
    if not database.spec.backup.enabled:
        if (found := await ctx.get(CronJob, cron_job_name(database))) is not None:
            await ctx.delete(found)
        return
    if database.spec.backup.destination is None:
        await ctx.create_once(_claim(database), owned=False)
    await ctx.apply(cron_job(database, engine, version))
    for job in await ctx.list(Job, labels=backup_selector(database)):
        if any(one.kind == "CronJob" for one in job.metadata.owner_references or ()):
            await _create_backup(database, ctx, job)


async def delete_expired(facts: Facts, ctx: Context) -> None:
    """Delete the backups that retention does not need; the data of each is deleted by its finalizer."""
    backup = facts.database.spec.backup
    if not backup.enabled:
        return
    for one in expired_backups(facts.backups, parse_retention(backup.retention), facts.now):
        await ctx.delete(one)
        ctx.event("BackupExpired", f"{one.name} is older than {backup.retention}", action="Backup")


async def _create_backup(database: Database, ctx: Context, job: Job) -> None:
    """Create the object of a scheduled backup, unless its Job is already deleted with it."""
    if await ctx.get(DatabaseBackup, job.name) is not None or job.metadata.deletion_timestamp is not None:
        return
    try:
        await ctx.client.get(Job, job.name, namespace=job.namespace)
        metadata = ObjectMeta(name=job.name, namespace=database.namespace, labels=backup_labels(database.name))
        await ctx.client.create(DatabaseBackup(metadata=metadata, spec=BackupSpec(database=database.name)))
    except (NotFound, AlreadyExists):
        return


def _claim(database: Database) -> PersistentVolumeClaim:
    """Return the claim for backups: twice the size of the data. It has no owner, and is never deleted."""
    data = Quantity(str(database.spec.storage_size))
    size = str(data + data)
    spec: dict[str, object] = {
        "accessModes": ["ReadWriteOnce" if database.spec.replicas == 1 else "ReadWriteMany"],
        "resources": {"requests": {"storage": size}},
    }
    if database.spec.storage_class_name is not None:
        spec["storageClassName"] = database.spec.storage_class_name
    claim = child(PersistentVolumeClaim, backup_claim(database), backup_labels(database.name), spec=spec)
    claim.metadata.namespace = database.namespace
    return claim
