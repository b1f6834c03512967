"""The major upgrade: the members stop, a Job writes the data of the new version beside the old, then they start again.

The old data is never changed. A single write of the engine (`Engine.finish_upgrade`) decides which data belongs to the
members: before it the old version starts, after it the new one. So a crash at any step goes on or goes back, and there
is no state between the two. The stage in the status is written before what it stands for is done:

0. BackingUp, if backups are enabled: a DatabaseBackup is made and has to succeed. The members serve meanwhile.
1. Stopping: backups that are being written end, and no other begins. The first member becomes the primary, the others
   stop. They wait while it has every write.
2. Stopped: the first member stops too. The Job runs on its claim; no member starts while a pod of the Job exists.
3. Starting: the new data belongs to the members. They start one by one and fetch it; the old data is deleted at last,
   and with backups the first one of the new data is requested.

A backup or a Job that fails, or a spec that asks for the old version again, leads from 0, 1 and 2 back to the old
version. What has failed is tried again when the spec, or the annotation `example.com/retry-upgrade`, changes.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from konverge import Context
from konverge_operators.database.api import Database, Upgrade
from konverge_operators.database.backups.api import BackupPhase
from konverge_operators.database.engine import Engine, EngineError, Target
from konverge_operators.database.facts import Facts
from konverge_operators.database.names import pod_name
from konverge_operators.database.steps import ScaleTo, Step, SwitchOver, Wait
from konverge_operators.database.upgrade_backups import create_backup, free_name
from konverge_operators.database.upgrade_jobs import JobState, attempt_of, delete_job, job_name, upgrade_job

__all__ = ["UpgradeStep", "delete_old_data", "execute", "next_upgrade_step"]

UpgradeStep: TypeAlias = Literal[
    "begin", "backup", "halt", "stop", "create", "finish", "fail", "delete", "start", "forget"
]
"""Begin; request the backup; let members stop; stop the last one; create the Job; let the new data belong to the
members; record a failure; delete the Job; start the members with the new data; with the old data.
"""


def next_upgrade_step(facts: Facts, step: Step) -> UpgradeStep | Step:
    """Return the next step: of the upgrade if one is wanted or has begun, else `step`."""
    upgrade, state = facts.database.status.upgrade, facts.upgrade_job
    if not upgrade.stage:
        return "begin" if facts.upgrade_requested and step is None and facts.replicas else step
    if upgrade.stage == "Starting":
        return step
    if not facts.upgrade_requested:
        return _leave(facts, state)
    if upgrade.stage == "BackingUp":
        return _back_up(facts) if step is None else step
    if upgrade.stage == "Stopping":
        return _stop_others(facts)
    if facts.replicas:
        return ScaleTo(0)
    if facts.pods:
        return Wait("members are being stopped")
    return _run_job(facts, state)


def _leave(facts: Facts, state: JobState) -> UpgradeStep:
    """Return the step after the Job: members start only when nothing of it is left."""
    if state.exists:
        return "delete"
    return "start" if facts.major != facts.database.status.upgrade.previous else "forget"


def _back_up(facts: Facts) -> UpgradeStep | Step:
    """Let members stop when there is a good backup, or when backups were switched off."""
    if not facts.database.spec.backup.enabled:
        return "halt"
    backup = facts.upgrade_backup
    if backup is None:
        return "backup"
    if backup.status.phase is BackupPhase.SUCCEEDED:
        return "halt"
    return "fail" if backup.status.phase is BackupPhase.FAILED else Wait(f"{backup.name} is being written")


def _stop_others(facts: Facts) -> UpgradeStep | Step:
    """Stop all members but the first, which must be the primary: then it alone has every write."""
    first = pod_name(facts.database, 0)
    if backups := facts.upgrade_job.backups:
        return Wait(f"{backups[0]} is being written")
    if not facts.primary:
        return Wait("no member accepts writes")
    if facts.primary != first:
        return (
            SwitchOver(first, "the first member is upgraded") if facts.is_healthy(first) else Wait(f"{first} not ready")
        )
    if facts.replicas > 1:
        return ScaleTo(1)
    return Wait("members are being stopped") if facts.stopping else "stop"


def _run_job(facts: Facts, state: JobState) -> UpgradeStep | Step:
    if state.job is None:
        return Wait("a pod of the upgrade is being deleted") if state.pods else "create"
    if state.job.name != job_name(facts.database, facts.requested_major):
        return "delete"
    if state.has_condition("Complete"):
        return "finish"
    return (
        "fail" if state.has_condition("Failed") or state.is_expired(facts.now) else Wait("the data is being upgraded")
    )


async def execute(step: UpgradeStep, ctx: Context, engine: Engine, target: Target, facts: Facts) -> Database:
    """Execute a step; return the database as it is stored then. `target` has the version of the spec."""
    database = target.database
    if step == "create":
        await ctx.create_once(upgrade_job(database, engine, facts.major, target.version))
        ctx.event("UpgradeStarted", f"from {facts.major} to {target.version}", action="Upgrade")
    elif step == "backup":
        await create_backup(database, ctx, database.status.upgrade.backup)
    elif step == "delete":
        await delete_job(facts.upgrade_job, ctx)
    elif step == "finish":
        return await _finish(ctx, engine, target, facts)
    elif step == "fail":
        return await _fail(database, ctx, _failure(facts))
    else:
        return await _record(database, ctx, await _next_stage(step, ctx, facts))
    return database


async def _next_stage(step: UpgradeStep, ctx: Context, facts: Facts) -> Upgrade:
    """Return what is recorded before the next stage begins."""
    database, before = facts.database, facts.database.status.upgrade
    if step == "begin":
        return await _begin(ctx, facts)
    if step == "halt":
        return Upgrade(stage="Stopping", previous=before.previous, backup=before.backup)
    if step == "stop":
        return Upgrade(stage="Stopped", previous=before.previous, backup=before.backup)
    if step == "start":
        backup = await free_name(database, ctx, f"after-{facts.major}")
        return Upgrade(stage="Starting", previous=before.previous, backup=backup)
    return Upgrade(attempt=before.attempt, message=before.message)


async def _begin(ctx: Context, facts: Facts) -> Upgrade:
    if backup := await free_name(facts.database, ctx, f"before-{facts.requested_major}"):
        return Upgrade(stage="BackingUp", previous=facts.major, backup=backup)
    message = f"backup.enabled is false: {facts.major} is upgraded to {facts.requested_major} without a backup"
    ctx.event("NoBackup", message, warning=True, action="Upgrade")
    return Upgrade(stage="Stopping", previous=facts.major)


async def _finish(ctx: Context, engine: Engine, target: Target, facts: Facts) -> Database:
    """Let the new data belong to the members."""
    try:
        await engine.finish_upgrade(target, facts.upgrade_job.message)
    except EngineError as error:
        return await _fail(target.database, ctx, str(error))
    ctx.event("DataUpgraded", f"from {facts.major} to {target.version}", action="Upgrade")
    return target.database


def _failure(facts: Facts) -> str:
    """Return why an upgrade has failed."""
    if facts.database.status.upgrade.stage == "BackingUp" and facts.upgrade_backup is not None:
        return f"the backup {facts.upgrade_backup.name} failed: {facts.upgrade_backup.status.message}"
    return facts.upgrade_job.message or "the pod of the Job did not start, or was lost"


async def delete_old_data(ctx: Context, engine: Engine, target: Target, facts: Facts) -> Database:
    """Delete the data of the previous version when all members run the new one; return the database as it is then."""
    for name in facts.healthy:
        await engine.delete_old_data(target, name)
    database = target.database
    if database.spec.backup.enabled and database.status.upgrade.backup:
        await create_backup(database, ctx, database.status.upgrade.backup)
    ctx.event("Upgraded", f"all members run {target.version}", action="Upgrade")
    database.status.version = target.version  # with the stage: a backup may start now, with this version
    return await _record(database, ctx, Upgrade())


async def _fail(database: Database, ctx: Context, message: str) -> Database:
    """Record a failure: the upgrade goes back, and is not tried again."""
    before = database.status.upgrade
    ctx.event("UpgradeFailed", message, warning=True, action="Upgrade")
    failed = Upgrade(stage=before.stage, previous=before.previous, backup=before.backup)
    failed.attempt, failed.message = attempt_of(database), message
    return await _record(database, ctx, failed)


async def _record(database: Database, ctx: Context, upgrade: Upgrade) -> Database:
    database.status.upgrade = upgrade
    return await ctx.update_status(database)
