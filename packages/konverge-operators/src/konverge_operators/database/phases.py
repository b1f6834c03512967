"""The phases of a Database: a total function of the facts."""

from __future__ import annotations

from datetime import timedelta

from konverge.workflow import DerivedPhase, Phases
from konverge_operators.database.api import Database, Phase
from konverge_operators.database.facts import Facts

__all__ = ["IN_PROGRESS", "derive_phase", "phases"]

IN_PROGRESS = frozenset(
    {Phase.PENDING, Phase.CREATING, Phase.RESTORING, Phase.UPDATING, Phase.SCALING, Phase.EXPANDING}
)
"""The phases in which the operator brings a change about."""

_CREATION_LIMIT = timedelta(minutes=15)
_UPDATE_LIMIT = timedelta(minutes=10)
_FAILOVER_LIMIT = timedelta(minutes=2)


def derive_phase(database: Database, facts: Facts) -> DerivedPhase[Phase]:
    """Return the phase that follows from what is observed. Every state has one."""
    if database.metadata.deletion_timestamp is not None:
        return DerivedPhase(Phase.DELETING, "Deleting", "the database is being deleted")
    if facts.violation:
        phase = Phase.DEGRADED if facts.initialized else Phase.FAILED
        return DerivedPhase(phase, "InvalidSpec", facts.violation, warning=True)
    if facts.missing:
        message = f"create the Secret {', '.join(facts.missing)} again with the password that the data has"
        return DerivedPhase(Phase.DEGRADED, "CredentialsMissing", message, warning=True)
    if database.spec.hibernate and not facts.pods and not facts.replicas:
        return DerivedPhase(Phase.HIBERNATED, "Hibernated", "all members are stopped, their data is kept")
    if facts.unreachable:
        return DerivedPhase(Phase.DEGRADED, "EngineUnreachable", facts.unreachable, warning=True)
    if not facts.initialized or not database.status.last_ready.replicas:
        return _creating(database, facts)
    return _created(database, facts)


def _creating(database: Database, facts: Facts) -> DerivedPhase[Phase]:
    """Return the phase of a database that never was ready."""
    if facts.restoring:
        return _restoring(facts)
    if _is_complete(facts):
        return _ready(facts)
    created = database.status.restored_at or database.metadata.creation_timestamp
    if created is not None and facts.now - created > _CREATION_LIMIT:
        message = f"not ready after {_CREATION_LIMIT.seconds // 60} min: {_progress(facts)}"
        return DerivedPhase(Phase.FAILED, "ProgressDeadlineExceeded", message, warning=True)
    if facts.stateful_set is None:
        return DerivedPhase(Phase.PENDING, "Pending", "the members are not created yet")
    return DerivedPhase(Phase.CREATING, "Creating", _progress(facts))


def _restoring(facts: Facts) -> DerivedPhase[Phase]:
    if facts.recovery_error:
        return DerivedPhase(Phase.FAILED, "RecoveryFailed", facts.recovery_error, warning=True)
    return DerivedPhase(Phase.RESTORING, "Restoring", "the data is being restored")


def _created(database: Database, facts: Facts) -> DerivedPhase[Phase]:
    """Return the phase of a database that was ready once, by what has changed since."""
    last = database.status.last_ready
    if database.status.upgrade.stage in ("Stopping", "Stopped"):
        message = f"the data is being upgraded from {facts.major} to {facts.requested_major}"
        return DerivedPhase(Phase.UPDATING, "Upgrading", message if facts.upgrade_requested else "the upgrade is left")
    if database.spec.hibernate:
        return DerivedPhase(Phase.SCALING, "Hibernating", "members are being stopped")
    if (failure := facts.observed.failure) is not None:
        return DerivedPhase(Phase.DEGRADED, failure.reason, failure.message, warning=True)
    if facts.replicas and not facts.primary:
        return _without_primary(facts)
    if facts.expansion_error:
        return DerivedPhase(Phase.DEGRADED, "StorageCannotGrow", facts.expansion_error, warning=True)
    if facts.claims_to_resize:
        names = ", ".join(one.name for one in facts.claims_to_resize)
        return DerivedPhase(Phase.EXPANDING, "Expanding", f"{names} being expanded")
    if _is_complete(facts):
        return _complete(facts)
    if facts.revision != last.revision or any(facts.member(name).pending_restart for name in facts.expected):
        return _updating(facts)
    if database.spec.replicas != last.replicas or facts.replicas != database.spec.replicas or facts.stopping:
        return DerivedPhase(Phase.SCALING, "Scaling", _progress(facts))
    if facts.without_synchronous and len(facts.healthy) == facts.replicas:
        return DerivedPhase(Phase.DEGRADED, "NoSynchronousReplica", "commits wait for no replica yet", warning=True)
    return DerivedPhase(Phase.DEGRADED, "MembersNotReady", _progress(facts), warning=True)


def _complete(facts: Facts) -> DerivedPhase[Phase]:
    """Return the phase of a database whose members are as they have to be: but an upgrade may have failed, or begin."""
    if facts.upgrade_error:
        message = f"{facts.requested_major} was not reached, {facts.major} serves: {facts.upgrade_error}"
        return DerivedPhase(Phase.DEGRADED, "UpgradeFailed", message, warning=True)
    if facts.upgrade_requested or facts.database.status.upgrade.stage:
        waits = ", after a backup" if facts.upgrade_job.backups else ""
        return DerivedPhase(Phase.UPDATING, "Upgrading", f"from {facts.major} to {facts.requested_major}{waits}")
    return _ready(facts)


def _updating(facts: Facts) -> DerivedPhase[Phase]:
    """Return the phase during an update: it stops at a new pod that does not become ready."""
    for pod in facts.pods:
        created = pod.metadata.creation_timestamp
        is_old = created is not None and facts.now - created > _UPDATE_LIMIT
        if is_old and not facts.is_stale(pod) and not facts.is_healthy(pod.name):
            message = f"{pod.name} is not ready in the new version"
            return DerivedPhase(Phase.DEGRADED, "UpdateStopped", message, warning=True)
    return DerivedPhase(Phase.UPDATING, "Updating", _progress(facts))


def _without_primary(facts: Facts) -> DerivedPhase[Phase]:
    lost = facts.database.status.primary_lost_at
    if lost is not None and facts.now - lost > _FAILOVER_LIMIT:
        return DerivedPhase(Phase.DEGRADED, "NoPrimary", f"no primary: {_progress(facts)}", warning=True)
    return DerivedPhase(Phase.FAILING_OVER, "NoPrimary", "no member accepts writes", warning=True)


def _is_complete(facts: Facts) -> bool:
    """Report whether the members are those of the spec, and all of them serve."""
    spec = facts.database.spec
    pending = any(facts.member(name).pending_restart for name in facts.expected)
    waits = facts.stale or facts.stopping or facts.claims_to_resize or pending or not facts.set_is_current
    counts = len(facts.healthy) == facts.replicas == spec.replicas
    serves = bool(facts.primary) and not facts.without_synchronous
    return serves and counts and not waits and facts.observed.config_current


def _ready(facts: Facts) -> DerivedPhase[Phase]:
    return DerivedPhase(Phase.READY, "AllMembersReady", f"{facts.primary} is the primary, {_progress(facts)}")


def _progress(facts: Facts) -> str:
    return f"{len(facts.healthy)} of {facts.database.spec.replicas} members are ready"


_LIVE = frozenset(Phase) - {Phase.PENDING}
_NEW = frozenset({Phase.CREATING, Phase.RESTORING})

phases: Phases[Phase] = Phases(
    Phase.PENDING,
    {
        Phase.PENDING: _LIVE,
        Phase.CREATING: _LIVE - {Phase.CREATING, Phase.RESTORING, Phase.UPDATING, Phase.SCALING, Phase.FAILING_OVER},
        Phase.RESTORING: _LIVE - {Phase.RESTORING, Phase.UPDATING, Phase.SCALING, Phase.FAILING_OVER},
        **{phase: _LIVE - {phase, *_NEW} for phase in _LIVE - {*_NEW, Phase.DELETING}},
        Phase.FAILED: _LIVE - {Phase.FAILED} | {Phase.PENDING},
        Phase.DEGRADED: frozenset(Phase) - {Phase.DEGRADED},
        Phase.HIBERNATED: frozenset(Phase) - {Phase.HIBERNATED},
        Phase.DELETING: frozenset[Phase](),
    },
    derive_phase,
)
