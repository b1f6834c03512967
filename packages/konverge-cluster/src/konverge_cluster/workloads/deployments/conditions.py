"""Conditions of a Deployment.

A condition with the same status and reason stays unchanged, message and times included. One that changes moves to
the end of the list; its transition time changes only with its status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from konverge.k8s.apps.v1 import DeploymentCondition, ReplicaSet
from konverge.objects.conditions import ConditionStatus
from konverge_cluster.clock import truncate_to_seconds

__all__ = [
    "AVAILABLE",
    "FAILURE",
    "PROGRESSING",
    "condition_of",
    "failure_condition",
    "new_condition",
    "remove_condition",
    "set_condition",
]

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
FAILURE: Final = "ReplicaFailure"


def new_condition(
    type_: str, status: ConditionStatus, *, reason: str, message: str, now: datetime
) -> DeploymentCondition:
    """Return a condition that changed just now."""
    at = truncate_to_seconds(now)
    return DeploymentCondition(
        type=type_, status=status, reason=reason, message=message, last_update_time=at, last_transition_time=at
    )


def condition_of(conditions: Iterable[DeploymentCondition], type_: str) -> DeploymentCondition | None:
    """Return the condition of a type."""
    return next((condition for condition in conditions if condition.type == type_), None)


def set_condition(conditions: Sequence[DeploymentCondition], new: DeploymentCondition) -> list[DeploymentCondition]:
    """Return the conditions with a new one, or unchanged if it has the same status and reason."""
    old = condition_of(conditions, new.type)
    if old is not None and old.status == new.status:
        if old.reason == new.reason:
            return list(conditions)
        new.last_transition_time = old.last_transition_time
    return [*remove_condition(conditions, new.type), new]


def remove_condition(conditions: Iterable[DeploymentCondition], type_: str) -> list[DeploymentCondition]:
    """Return the conditions except those of a type."""
    return [condition for condition in conditions if condition.type != type_]


def failure_condition(new: ReplicaSet | None, all_sets: Iterable[ReplicaSet]) -> DeploymentCondition | None:
    """Return the failure that a ReplicaSet reports, the new one first, as a condition of the Deployment."""
    for one in ([new] if new else []) + list(all_sets):
        for condition in one.status.conditions:
            if condition.type == FAILURE:
                return DeploymentCondition(
                    type=FAILURE,
                    status=condition.status,
                    reason=condition.reason,
                    message=condition.message,
                    last_update_time=condition.last_transition_time,
                    last_transition_time=condition.last_transition_time,
                )
    return None
