"""The phases of a Cache: a total function of its server and of whether it was ready before."""

from __future__ import annotations

from konverge.errors import TerminalError
from konverge.workflow import ComponentPhase, DerivedPhase, Phases, WorkflowState
from konverge_operators.redis.cache.api import Cache, CachePhase

__all__ = ["derive_phase", "phases"]

_LIVE = frozenset(CachePhase) - {CachePhase.PENDING}


def derive_phase(_cache: Cache, state: WorkflowState) -> DerivedPhase[CachePhase]:
    """Return the phase that follows from what is observed. Every state has one."""
    if state.terminating:
        return DerivedPhase(CachePhase.DELETING, "Deleting", "the server is being removed")
    if state.suspended:
        return DerivedPhase(CachePhase.SUSPENDED, "Suspended", "spec.suspend is set: nothing is changed")
    if state.ready:
        return DerivedPhase(CachePhase.READY, "Ready", "the cache serves")
    server = state["server"]
    was_ready = bool(server.revision)
    if server.phase is ComponentPhase.FAILED and isinstance(server.error, TerminalError | None):
        return DerivedPhase(CachePhase.FAILED, server.reason, state.message, warning=True)
    if server.phase is ComponentPhase.UPDATING:
        return DerivedPhase(CachePhase.UPDATING, server.reason, state.message)
    if was_ready:
        return DerivedPhase(CachePhase.DEGRADED, server.reason, state.message, warning=True)
    return DerivedPhase(CachePhase.CREATING, server.reason, state.message)


phases = Phases(
    CachePhase.PENDING,
    {**{phase: _LIVE - {phase} for phase in CachePhase}, CachePhase.DELETING: frozenset[CachePhase]()},
    derive_phase,
)
