"""The phases of a RedisCluster: a total function of its shards and of what is under way."""

from __future__ import annotations

from konverge.errors import TerminalError
from konverge.workflow import ComponentPhase, DerivedPhase, Phases, WorkflowState
from konverge_operators.redis.cluster.api import ClusterPhase, RedisCluster

__all__ = ["derive_phase", "phases"]

_LIVE = frozenset(ClusterPhase) - {ClusterPhase.PENDING}
_WARNINGS = frozenset(
    {ClusterPhase.FAILING_OVER, ClusterPhase.DEGRADED, ClusterPhase.SLOTS_UNCOVERED, ClusterPhase.FAILED}
)


def derive_phase(cluster: RedisCluster, state: WorkflowState) -> DerivedPhase[ClusterPhase]:
    """Return the phase that follows from what is observed. Every state has one."""
    status = cluster.status
    if state.terminating:
        return DerivedPhase(ClusterPhase.DELETING, "Deleting", "the servers are being removed")
    shards = state["shards"]
    if shards.phase is ComponentPhase.FAILED and isinstance(shards.error, TerminalError | None):
        return DerivedPhase(ClusterPhase.FAILED, shards.reason, state.message, warning=True)
    if status.step and shards.phase is not ComponentPhase.FAILED:
        phase = ClusterPhase(status.step)
        return DerivedPhase(phase, phase.value, status.step_message, warning=phase in _WARNINGS)
    if state.ready:
        return DerivedPhase(ClusterPhase.READY, "Ready", "all slots are served")
    if not status.formed:
        return DerivedPhase(ClusterPhase.INITIALIZING, shards.reason, state.message)
    return DerivedPhase(ClusterPhase.DEGRADED, shards.reason, state.message, warning=True)


phases = Phases(
    ClusterPhase.PENDING,
    {**{phase: _LIVE - {phase} for phase in ClusterPhase}, ClusterPhase.DELETING: frozenset[ClusterPhase]()},
    derive_phase,
)
