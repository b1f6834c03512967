"""Conditions of a Deployment.

A condition that says the same (status and reason) stays as it was, message and times included. One that changes goes to
the end of the list; its transition time moves only with its status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from konverge.k8s.apps.v1 import DeploymentCondition, ReplicaSet
from konverge.objects.conditions import ConditionStatus
from konverge_cluster.clock import truncate_to_seconds

__all__ = ["AVAILABLE", "FAILURE", "PROGRESSING", "condition_of", "failure_of", "new_condition", "with_", "without"]

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
FAILURE: Final = "ReplicaFailure"


def new_condition(
    type_: str, status: ConditionStatus, *, reason: str, message: str, now: datetime
) -> DeploymentCondition:
    """Make a condition that changed just now."""
    at = truncate_to_seconds(now)
    return DeploymentCondition(
        type=type_, status=status, reason=reason, message=message, last_update_time=at, last_transition_time=at
    )


def condition_of(conditions: Iterable[DeploymentCondition], type_: str) -> DeploymentCondition | None:
    """Give the condition of a type."""
    return next((condition for condition in conditions if condition.type == type_), None)


def with_(conditions: Sequence[DeploymentCondition], new: DeploymentCondition) -> list[DeploymentCondition]:
    """Give the conditions with a new one, or as they are when it says nothing new."""
    old = condition_of(conditions, new.type)
    if old is not None and old.status == new.status:
        if old.reason == new.reason:
            return list(conditions)
        new.last_transition_time = old.last_transition_time
    return [*without(conditions, new.type), new]


def without(conditions: Iterable[DeploymentCondition], type_: str) -> list[DeploymentCondition]:
    """Give the conditions without those of a type."""
    return [condition for condition in conditions if condition.type != type_]


def failure_of(new: ReplicaSet | None, all_sets: Iterable[ReplicaSet]) -> DeploymentCondition | None:
    """Give the failure that a ReplicaSet reports, the new one's before all others, as one of the Deployment."""
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
