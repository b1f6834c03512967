"""The status of an object with a workflow, derived from the states of its components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from konverge.errors import TerminalError
from konverge.objects import Condition, now, remove_condition
from konverge.objects import field as model_field
from konverge.reconcile import Context
from konverge.schema import Spec, Status
from konverge.workflow.components import Component, ComponentPhase, ComponentState

__all__ = ["ComponentStatus", "WorkflowState", "WorkflowStatus", "set_components", "set_conditions", "states_before"]

_IN_PROGRESS = frozenset(
    {ComponentPhase.WAITING, ComponentPhase.CREATING, ComponentPhase.UPDATING, ComponentPhase.REMOVING}
)


class ComponentStatus(Spec):
    """The observed state of one component."""

    name: str
    phase: ComponentPhase
    ready: bool = False
    reason: str = ""
    message: str = ""
    since: datetime | None = None
    """When the component came into its phase."""
    revision: str = ""
    """Hash of the desired objects when the component was last ready."""


class WorkflowStatus(Status):
    """The status of an object with a workflow. A subclass adds `phase`, an enum, and fields of its own."""

    message: str = ""
    observed_generation: int = 0
    components: list[ComponentStatus] = model_field(default_factory=list)
    conditions: list[Condition] = model_field(default_factory=list)
    last_error: str = ""
    retry_count: int = 0


@dataclass(frozen=True)
class WorkflowState(Mapping[str, ComponentState]):
    """The states of the components that are enabled or still exist, by name."""

    states: tuple[ComponentState, ...]
    terminating: bool = False
    suspended: bool = False
    _by_name: dict[str, ComponentState] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {one.name: one for one in self.states})

    def __getitem__(self, name: str) -> ComponentState:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self.states)

    @property
    def ready(self) -> bool:
        """Whether every component is ready."""
        return all(one.ready for one in self.states)

    def within(self, *phases: ComponentPhase) -> tuple[ComponentState, ...]:
        """Return the components that are in one of these phases, in the order of their declaration."""
        return tuple(one for one in self.states if one.phase in phases)

    @property
    def message(self) -> str:
        """What the application waits for, such as "waiting for backend (available: 1/2)"; "" when all are ready."""
        failed = self.within(ComponentPhase.FAILED)
        if failed:
            return "; ".join(f"{one.name}: {one.message}" for one in failed)
        for state in self.states:
            if not state.ready:
                return f"waiting for {state.name} ({state.message})" if state.message else f"waiting for {state.name}"
        return ""

    @property
    def errors(self) -> tuple[Exception, ...]:
        return tuple(one.error for one in self.states if one.error is not None)


def states_before(components: Sequence[ComponentStatus]) -> dict[str, ComponentState]:
    """Return the states that a status reports, by component."""
    return {
        one.name: ComponentState(
            name=one.name, phase=one.phase, reason=one.reason, message=one.message, revision=one.revision
        )
        for one in components
    }


def set_components(status: Any, state: WorkflowState) -> None:
    """Set the list of components in a status."""
    before: dict[str, ComponentStatus] = {one.name: one for one in status.components}
    status.components = [_component_status(one, before.get(one.name)) for one in state.states]


def _component_status(state: ComponentState, before: ComponentStatus | None) -> ComponentStatus:
    since = before.since if before is not None and before.phase is state.phase else None
    return ComponentStatus(
        name=state.name,
        phase=state.phase,
        ready=state.ready,
        reason=state.reason,
        message=state.message,
        since=since or now(),
        revision=state.revision,
    )


def set_conditions(obj: Any, ctx: Context, components: Sequence[Component[Any]], state: WorkflowState) -> None:
    """Set the conditions Ready, Reconciling and Stalled, and one for each component that is enabled or exists."""
    for component in components:
        found = state.get(component.name)
        if found is None:
            remove_condition(obj.status.conditions, component.condition)
        else:
            ctx.condition(obj, component.condition, found.ready, reason=found.reason, message=found.message)
    stalled = [one for one in state.within(ComponentPhase.FAILED) if _is_stalled(one)]
    reconciling = [one for one in state.within(*_IN_PROGRESS) if not state.suspended]
    first = next(iter([*state.within(ComponentPhase.FAILED), *(one for one in state.states if not one.ready)]), None)
    good = "Deleting" if state.terminating else "Ready"
    ctx.set_ready(
        obj, state.ready and not state.terminating, reason=first.reason if first else good, message=state.message
    )
    _set(obj, ctx, "Reconciling", reconciling)
    _set(obj, ctx, "Stalled", stalled)


def _is_stalled(state: ComponentState) -> bool:
    """Report whether a failure does not go away without a change: an invalid object, or one that reports failure."""
    return state.error is None or isinstance(state.error, TerminalError)


def _set(obj: Any, ctx: Context, type_: str, causes: Sequence[ComponentState]) -> None:
    if not causes:
        ctx.condition(obj, type_, False, reason=f"Not{type_}")
        return
    ctx.condition(obj, type_, True, reason=causes[0].reason, message=f"{causes[0].name}: {causes[0].message}")
