"""The phases of a MyApp: a total function of its components, and of whether the application ran before."""

from __future__ import annotations

from konverge.errors import Conflict, Retry, ServerError, TooManyRequests, TransportError
from konverge.workflow import ComponentPhase, DerivedPhase, Phases, WorkflowState
from konverge_operators.myapp.api import MyApp, Phase
from konverge_operators.myapp.application import COMPONENT

__all__ = ["derive_phase", "phases"]

_LIVE = frozenset(Phase) - {Phase.PENDING}
_TRANSITIONS = {**{phase: _LIVE - {phase} for phase in Phase}, Phase.DELETING: frozenset[Phase]()}
_TRANSIENT = (Conflict, Retry, TooManyRequests, TransportError)


def derive_phase(_app: MyApp, state: WorkflowState) -> DerivedPhase[Phase]:
    """Return the phase that follows from what is observed. Every state has one."""
    if state.terminating:
        return DerivedPhase(Phase.DELETING, "Deleting", "components are being removed")
    if state.suspended:
        return DerivedPhase(Phase.SUSPENDED, "Suspended", "spec.suspend is set: nothing is changed")
    if state.ready:
        return DerivedPhase(Phase.RUNNING, "AllComponentsReady", "the application runs")
    if COMPONENT in state and state[COMPONENT].revision:
        if state.within(ComponentPhase.DEGRADED, ComponentPhase.FAILED, ComponentPhase.WAITING):
            return DerivedPhase(Phase.DEGRADED, "ComponentNotReady", state.message, warning=True)
        return DerivedPhase(Phase.UPDATING, "RollingOut", state.message)
    failed = [one for one in state.within(ComponentPhase.FAILED) if not _is_transient(one.error)]
    if failed:
        return DerivedPhase(Phase.FAILED, failed[0].reason, state.message, warning=True)
    return DerivedPhase(Phase.CREATING, "ComponentsNotReady", state.message)


def _is_transient(error: Exception | None) -> bool:
    """Report whether an error may go away by itself. An unknown field in an applied object is answered with 500."""
    return isinstance(error, _TRANSIENT) or (isinstance(error, ServerError) and error.status != 500)


phases = Phases(Phase.PENDING, _TRANSITIONS, derive_phase)
