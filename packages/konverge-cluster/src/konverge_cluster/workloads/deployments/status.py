"""The status of a Deployment, derived from its ReplicaSets, and the progress of its rollout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from konverge.k8s.apps.v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from konverge_cluster.workloads.deployments.conditions import (
    AVAILABLE,
    FAILURE,
    PROGRESSING,
    condition_of,
    failure_condition,
    new_condition,
    remove_condition,
    set_condition,
)
from konverge_cluster.workloads.deployments.sizes import available, limits_of, replicas, total

__all__ = [
    "ReplicaSets",
    "has_deadline",
    "is_complete",
    "next_check",
    "paused_condition",
    "rollout_status",
    "status_of",
]

_NO_LIMIT: Final = 2**31 - 1
_TIMED_OUT: Final = "ProgressDeadlineExceeded"
_FINISHED: Final = "NewReplicaSetAvailable"
_PAUSED: Final = "DeploymentPaused"


@dataclass(frozen=True)
class ReplicaSets:
    """The ReplicaSets of a Deployment: the one of its current template, if any, and all others."""

    new: ReplicaSet | None
    old: list[ReplicaSet]

    @property
    def all(self) -> list[ReplicaSet]:
        """All of them, the new one last."""
        return [*self.old, self.new] if self.new is not None else list(self.old)


def status_of(deployment: Deployment, sets: ReplicaSets, now: datetime) -> DeploymentStatus:
    """Return the status for these ReplicaSets; counters that are omitted when zero are None."""
    everything = sets.all
    ready = available(everything)
    limits = limits_of(deployment)
    if ready >= limits.min_available:
        condition = new_condition(
            AVAILABLE,
            "True",
            reason="MinimumReplicasAvailable",
            message="Deployment has minimum availability.",
            now=now,
        )
    else:
        condition = new_condition(
            AVAILABLE,
            "False",
            reason="MinimumReplicasUnavailable",
            message="Deployment does not have minimum availability.",
            now=now,
        )
    return DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=_existing(everything) or None,
        updated_replicas=_existing([sets.new] if sets.new else []) or None,
        ready_replicas=sum(one.status.ready_replicas or 0 for one in everything) or None,
        available_replicas=ready or None,
        unavailable_replicas=max(total(everything) - ready, 0) or None,
        terminating_replicas=_terminating(everything),
        collision_count=deployment.status.collision_count,
        conditions=set_condition(deployment.status.conditions, condition),
    )


def rollout_status(deployment: Deployment, sets: ReplicaSets, now: datetime) -> DeploymentStatus:
    """Return the status during a rollout: with the progress, and failures of ReplicaSets."""
    status = status_of(deployment, sets, now)
    if not has_deadline(deployment):
        status.conditions = remove_condition(status.conditions, PROGRESSING)
    elif not _is_rollout_complete(deployment, status):
        status.conditions = _progress(deployment, status, sets.new, now)
    failure = failure_condition(sets.new, sets.all)
    if failure is None:
        status.conditions = remove_condition(status.conditions, FAILURE)
    else:
        status.conditions = set_condition(status.conditions, failure)
    return status


def paused_condition(deployment: Deployment, now: datetime) -> DeploymentCondition | None:
    """Return the condition for a pause or a resume, if it is missing: a paused rollout makes no progress."""
    condition = condition_of(deployment.status.conditions, PROGRESSING)
    reason = condition.reason if condition is not None else ""
    paused = bool(deployment.spec.paused)
    if not has_deadline(deployment) or reason == _TIMED_OUT or paused == (reason == _PAUSED):
        return None
    reason, message = (_PAUSED, "Deployment is paused") if paused else ("DeploymentResumed", "Deployment is resumed")
    return new_condition(PROGRESSING, "Unknown", reason=reason, message=message, now=now)


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Report whether all desired pods are of the current template and available, and no others are left."""
    desired = replicas(deployment)
    counters = (status.updated_replicas, status.replicas, status.available_replicas)
    observed = (status.observed_generation or 0) >= (deployment.metadata.generation or 0)
    return observed and all((counter or 0) == desired for counter in counters)


def next_check(deployment: Deployment, now: datetime) -> float | None:
    """Return in how many seconds the progress deadline is to be checked; None if never."""
    condition = condition_of(deployment.status.conditions, PROGRESSING)
    finished = condition is None or condition.reason == _TIMED_OUT or is_complete(deployment, deployment.status)
    if finished or not has_deadline(deployment):
        return None
    due = _deadline(deployment, condition)
    return max((due - now).total_seconds(), 0.0) + 1.0 if due is not None else None


def has_deadline(deployment: Deployment) -> bool:
    """Report whether a rollout has a progress deadline."""
    return deployment.spec.progress_deadline_seconds not in (None, _NO_LIMIT)


def _is_rollout_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Report whether the last rollout is complete: later changes are no progress."""
    condition = condition_of(deployment.status.conditions, PROGRESSING)
    return status.replicas == status.updated_replicas and condition is not None and condition.reason == _FINISHED


def _progress(
    deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, now: datetime
) -> list[DeploymentCondition]:
    subject = f'ReplicaSet "{new.name}"' if new is not None else f'Deployment "{deployment.name}"'
    if is_complete(deployment, status):
        message = f"{subject} has successfully progressed."
        return set_condition(
            status.conditions, new_condition(PROGRESSING, "True", reason=_FINISHED, message=message, now=now)
        )
    if _has_progressed(deployment.status, status):
        message = f"{subject} is progressing."
        progressing = new_condition(PROGRESSING, "True", reason="ReplicaSetUpdated", message=message, now=now)
        return _set_progressing(status.conditions, progressing)
    if _has_timed_out(deployment, now):
        message = f"{subject} has timed out progressing."
        timed_out = new_condition(PROGRESSING, "False", reason=_TIMED_OUT, message=message, now=now)
        return set_condition(status.conditions, timed_out)
    return status.conditions


def _set_progressing(
    conditions: Sequence[DeploymentCondition], progressing: DeploymentCondition
) -> list[DeploymentCondition]:
    """Record progress even if the condition stays the same: the deadline starts at its update time."""
    old = condition_of(conditions, PROGRESSING)
    if old is not None and old.status == "True":
        progressing.last_transition_time = old.last_transition_time
    return [*remove_condition(conditions, PROGRESSING), progressing]


def _has_progressed(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    def outdated(status: DeploymentStatus) -> int:
        return (status.replicas or 0) - (status.updated_replicas or 0)

    return (
        (after.updated_replicas or 0) > (before.updated_replicas or 0)
        or outdated(after) < outdated(before)
        or (after.ready_replicas or 0) > (before.ready_replicas or 0)
        or (after.available_replicas or 0) > (before.available_replicas or 0)
    )


def _has_timed_out(deployment: Deployment, now: datetime) -> bool:
    condition = condition_of(deployment.status.conditions, PROGRESSING)
    if condition is None or condition.reason == _FINISHED:
        return False
    due = _deadline(deployment, condition)
    return condition.reason == _TIMED_OUT or (due is not None and due < now)


def _deadline(deployment: Deployment, condition: DeploymentCondition | None) -> datetime | None:
    if condition is None or condition.last_update_time is None:
        return None
    return condition.last_update_time + timedelta(seconds=deployment.spec.progress_deadline_seconds or 0)


def _existing(sets: Sequence[ReplicaSet]) -> int:
    return sum(one.status.replicas or 0 for one in sets)


def _terminating(sets: Sequence[ReplicaSet]) -> int | None:
    """Return the sum of terminating pods; None if an observed ReplicaSet does not report it."""
    counts = [one.status.terminating_replicas for one in sets if one.status.observed_generation]
    return None if None in counts else sum(count or 0 for count in counts)
