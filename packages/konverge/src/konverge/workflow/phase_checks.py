"""A generated test of phases: every phase is reached from the initial one, and left, by declared transitions only.

The phase function is called with every phase as the one before, for all components in the same phase and for one that
differs from the others, of objects that live, are suspended and are being deleted. It must return a phase for each.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, TypeVar

from konverge.objects import Resource
from konverge.workflow.components import ComponentPhase, ComponentState
from konverge.workflow.statuses import WorkflowState, set_components
from konverge.workflow.workflow import Workflow

__all__ = ["check_phases", "generate_states"]

T = TypeVar("T", bound=Resource)


def check_phases(workflow: Workflow[T], objects: Iterable[T]) -> None:
    """Check that the objects of a kind can reach and leave every phase by declared transitions.

    `objects` are samples; what the phase depends on besides the components must be among them.

    Raises: AssertionError that names the phases that are never reached, or never left.
    """
    samples = list(objects)
    phases = workflow.phases
    reached: dict[StrEnum, set[StrEnum]] = {}
    pending: list[StrEnum] = [phases.initial]
    while pending:
        before = pending.pop()
        if before not in reached:
            following = {phase for obj in samples for phase in _derived(workflow, obj, before)}
            reached[before] = {phase for phase in following if phase != before and phases.allows(before, phase)}
            pending += reached[before]
    never = [phase for phase in phases.transitions if phase not in reached]
    assert not never, f"never reached from {phases.initial} by declared transitions: {', '.join(never)}"
    kept = [phase for phase, following in reached.items() if phases.transitions[phase] and not following]
    assert not kept, f"reached and never left by declared transitions: {', '.join(kept)}"


def _derived(workflow: Workflow[Any], obj: Any, before: StrEnum) -> set[StrEnum]:
    """Return the phases that an object may be in after another one."""
    found = set()
    for state in generate_states(workflow, obj):
        copied = copy.deepcopy(obj)
        copied.status.phase = before
        set_components(copied.status, state)
        found.add(workflow.phases.derive(copied, state).phase)
    return found


def generate_states(workflow: Workflow[Any], obj: Any) -> Iterator[WorkflowState]:
    """Generate the states of an object's components: all in one phase, and one of them in another."""
    enabled = [one.name for one in workflow.components if one.name in workflow.enabled(obj)]
    for phase in ComponentPhase:
        for other in ComponentPhase:
            for name in enabled if other is not phase else enabled[:1]:
                found = tuple(_state(one, other if one == name else phase) for one in enabled)
                yield WorkflowState(found)
                yield WorkflowState(found, suspended=True)
                yield WorkflowState(found, terminating=True)
    yield WorkflowState((), terminating=True)


def _state(name: str, phase: ComponentPhase) -> ComponentState:
    was_ready = phase in (ComponentPhase.READY, ComponentPhase.UPDATING, ComponentPhase.DEGRADED)
    return ComponentState(
        name=name, phase=phase, reason=phase.value, message="generated", revision="generated" if was_ready else ""
    )
