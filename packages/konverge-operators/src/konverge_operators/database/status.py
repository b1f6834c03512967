"""The status of a Database, from the facts of one reconcile."""

from __future__ import annotations

from konverge import Context
from konverge.objects import Quantity
from konverge.workflow import DerivedPhase
from konverge_operators.database.api import Database, DatabaseStatus, LastReady, MemberStatus, Phase
from konverge_operators.database.backups.status import set_backup_status
from konverge_operators.database.facts import Facts, capacity_of
from konverge_operators.database.names import secrets_of, selector_of
from konverge_operators.database.phases import IN_PROGRESS

__all__ = ["report_primary", "set_status"]


def set_status(database: Database, ctx: Context, facts: Facts, derived: DerivedPhase[Phase], *, version: str) -> None:
    """Set every field of the status that follows from the facts."""
    status = database.status
    _set_members(status, facts)
    status.phase, status.message = derived.phase, derived.message
    status.observed_generation = database.metadata.generation or 0
    status.last_error, status.retry_count = "", 0
    status.selector = ",".join(f"{name}={value}" for name, value in selector_of(database).items())
    status.connection_secret = secrets_of(database).application
    status.initialized = facts.initialized
    status.last_replicas = facts.replicas or status.last_replicas
    if facts.initialized and facts.replicas and not facts.primary:
        status.primary_lost_at = status.primary_lost_at or facts.now
    else:
        status.primary_lost_at = None
    if derived.phase is Phase.READY:
        status.version = version
        status.last_ready = LastReady(replicas=facts.replicas, revision=facts.revision)
    _set_conditions(database, ctx, facts, derived)


def report_primary(ctx: Context, before: str, after: str) -> None:
    """Record an event when another member accepts writes than the last one that was reported."""
    if after and before and after != before:
        ctx.event("PrimaryChanged", f"{after} is the primary, {before} was", action="Reconcile")


def _set_members(status: DatabaseStatus, facts: Facts) -> None:
    status.members = [
        MemberStatus(name=one.name, role=one.role, state=one.state, timeline=one.timeline, lag=one.lag)
        for one in (facts.member(pod.name) for pod in facts.pods)
    ]
    status.primary = facts.primary
    status.replicas, status.ready_replicas = len(facts.pods), len(facts.healthy)
    capacities: list[Quantity] = [capacity_of(one) for one in facts.claims if facts.is_used(one)]
    status.storage = str(min(capacities)) if capacities else ""


def _set_conditions(database: Database, ctx: Context, facts: Facts, derived: DerivedPhase[Phase]) -> None:
    phase, reason, message = derived.phase, derived.reason, derived.message
    ctx.set_ready(database, phase is Phase.READY, reason=reason, message=message)
    writable = ("Primary", "a member accepts writes") if facts.primary else ("NoPrimary", "no member accepts writes")
    ctx.condition(database, "Available", bool(facts.primary), reason=writable[0], message=writable[1])
    suspended = database.spec.suspend and phase in IN_PROGRESS
    reconciling = phase in IN_PROGRESS and not suspended
    stopped = "Suspended" if suspended else "NotReconciling"
    ctx.condition(database, "Reconciling", reconciling, reason=reason if reconciling else stopped, message=message)
    stalled = bool(facts.violation or facts.missing or facts.expansion_error) or phase is Phase.FAILED
    ctx.condition(database, "Stalled", stalled, reason=reason if stalled else "NotStalled", message=message)
    set_backup_status(database, ctx, facts)
