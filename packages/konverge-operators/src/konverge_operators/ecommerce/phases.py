"""The phases of an EcommerceApp: a total function of its components, its spec and what last ran."""

from __future__ import annotations

from datetime import timedelta

from konverge.errors import TerminalError
from konverge.objects import now
from konverge.workflow import ComponentPhase, ComponentState, DerivedPhase, Phases, WorkflowState
from konverge_operators.ecommerce.api import EcommerceApp, Phase
from konverge_operators.ecommerce.tiers import images_of, replicas_of

__all__ = ["derive_phase", "phases", "update_reason"]

_LIVE = frozenset(Phase) - {Phase.PENDING}
_LOST = (ComponentPhase.DEGRADED, ComponentPhase.FAILED)


def derive_phase(app: EcommerceApp, state: WorkflowState) -> DerivedPhase[Phase]:
    """Return the phase that follows from what is observed. Every state has one."""
    if state.terminating:
        return DerivedPhase(Phase.DELETING, "Deleting", "components are being removed")
    if state.suspended:
        return DerivedPhase(Phase.SUSPENDED, "Suspended", "spec.suspend is set: nothing is changed")
    if state.ready:
        return DerivedPhase(Phase.RUNNING, "AllComponentsReady", "Application is running")
    ran = bool(app.status.last_running.images)
    failed = [one for one in state.within(ComponentPhase.FAILED) if _is_final(one)]
    if failed and not ran:
        return DerivedPhase(Phase.FAILED, failed[0].reason, state.message, warning=True)
    late = _late(app, state)
    if late:
        message = f"{late[0].name} is not ready after {app.spec.progress_deadline_seconds} s: {late[0].message}"
        return DerivedPhase(Phase.FAILED, "ProgressDeadlineExceeded", message, warning=True)
    if not ran:
        return DerivedPhase(Phase.CREATING, "ComponentsNotReady", state.message)
    if state.within(*_LOST):
        return DerivedPhase(Phase.DEGRADED, "ComponentNotReady", state.message, warning=True)
    return DerivedPhase(Phase.UPDATING, update_reason(app), state.message)


def _is_final(state: ComponentState) -> bool:
    return state.error is None or isinstance(state.error, TerminalError)


def _late(app: EcommerceApp, state: WorkflowState) -> list[ComponentState]:
    """Return the components that make no progress for too long. One that waits for configuration is never late."""
    since = {one.name: (one.phase, one.since) for one in app.status.components}
    deadline = timedelta(seconds=app.spec.progress_deadline_seconds)
    found: list[ComponentState] = []
    for one in state.within(ComponentPhase.CREATING, ComponentPhase.UPDATING):
        before, start = since.get(one.name, (None, None))
        if before is one.phase and start is not None and now() - start > deadline:
            found.append(one)
    return found


def update_reason(app: EcommerceApp) -> str:
    """Return what changed since the application last ran."""
    last = app.status.last_running
    if images_of(app) != last.images:
        return "ImageUpdate"
    return "Scaling" if replicas_of(app) != last.replicas else "ConfigurationUpdate"


phases = Phases(
    Phase.PENDING,
    {**{phase: _LIVE - {phase} for phase in Phase}, Phase.DELETING: frozenset[Phase]()},
    derive_phase,
)
