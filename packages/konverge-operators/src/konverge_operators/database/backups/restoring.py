"""Recovery at the creation of a Database: a Job fills the claim of the first member before there are members.

1. The credentials exist before the claim does: a claim is the sign of data (`credentials.py`).
2. The status says that the recovery is done before the StatefulSet exists.
3. The Job refuses a claim with other data. A failed Job is deleted and created again, so a repaired cause leads out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from konverge import Context, NotFound
from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge_operators.database.api import Database, Destination
from konverge_operators.database.backups.api import BackupPhase, DatabaseBackup
from konverge_operators.database.backups.jobs import is_complete, is_failed, job_name, job_result, restore_job
from konverge_operators.database.engine import Engine
from konverge_operators.database.facts import Facts
from konverge_operators.database.names import MANAGED_BY, claim_name, recovery_job, selector_of
from konverge_operators.database.storage import claim_spec
from konverge_operators.manifests import child

__all__ = ["RecoveryState", "go_on_restoring"]

_RETRY = timedelta(minutes=1)


@dataclass(frozen=True)
class RecoveryState:
    """How far a recovery is. `error` says why the last try failed, or what it waits for."""

    done: bool = False
    error: str = ""


async def go_on_restoring(facts: Facts, ctx: Context, engine: Engine, version: str) -> RecoveryState:
    """Bring a recovery one step further."""
    database = facts.database
    job = await _find_job(database, ctx)
    if job is not None and is_complete(job):
        return RecoveryState(done=True)
    if job is not None and is_failed(job):
        error = job_result(job, await ctx.list(Pod, labels=MANAGED_BY)).message or "the Job failed"
        ended = max(
            (one.last_transition_time for one in job.status.conditions if one.last_transition_time), default=None
        )
        if ended is None or facts.now - ended > _RETRY:
            await ctx.delete(job, propagation="Background")
        return RecoveryState(error=error)
    if job is None:
        source = await _source(database, ctx)
        if isinstance(source, str):
            return RecoveryState(error=source)
        await ctx.create_once(_data_claim(database), owned=False)
        await ctx.create_once(restore_job(database, engine, version, source))
        ctx.event("RecoveryStarted", f"the Job {recovery_job(database)} restores the data", action="Restore")
    return RecoveryState()


async def _find_job(database: Database, ctx: Context) -> Job | None:
    try:
        return await ctx.client.get(Job, recovery_job(database), namespace=database.namespace)
    except NotFound:
        return None


async def _source(database: Database, ctx: Context) -> tuple[Destination, str, str] | str:
    """Return the destination, the path and the backup to restore, or what is missing."""
    recovery = database.spec.recovery
    assert recovery is not None
    if (origin := recovery.from_destination) is not None:
        return Destination(claim=origin.claim, s3=origin.s3), origin.database or database.name, ""
    name = recovery.from_backup or ""
    backup = await ctx.get(DatabaseBackup, name)
    if backup is None:
        return f"there is no DatabaseBackup {name}"
    if backup.status.phase is not BackupPhase.SUCCEEDED or backup.status.location is None:
        return f"the DatabaseBackup {name} is {backup.status.phase}"
    location = backup.status.location
    return location.destination, location.path, job_name(backup)


def _data_claim(database: Database) -> PersistentVolumeClaim:
    """Return the claim of the first member, as the StatefulSet would create it."""
    spec = claim_spec(database, str(database.spec.storage_size))
    claim = child(PersistentVolumeClaim, claim_name(database, 0), selector_of(database), spec=spec)
    claim.metadata.namespace = database.namespace
    return claim
