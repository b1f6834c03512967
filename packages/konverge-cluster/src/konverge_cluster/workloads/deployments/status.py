"""What a Deployment says of itself, from its ReplicaSets, and whether its rollout comes forward."""

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
    failure_of,
    new_condition,
    with_,
    without,
)
from konverge_cluster.workloads.deployments.sizes import available, limits_of, replicas, total

__all__ = ["Sets", "has_deadline", "is_complete", "next_check", "paused_condition", "rollout_status", "status_of"]

_NO_LIMIT: Final = 2**31 - 1
_TIMED_OUT: Final = "ProgressDeadlineExceeded"
_FINISHED: Final = "NewReplicaSetAvailable"
_PAUSED: Final = "DeploymentPaused"


@dataclass(frozen=True)
class Sets:
    """The ReplicaSets of a Deployment: the one of its present template, if there is one, and all others."""

    new: ReplicaSet | None
    old: list[ReplicaSet]

    @property
    def all(self) -> list[ReplicaSet]:
        """All of them, the new one last."""
        return [*self.old, self.new] if self.new is not None else list(self.old)


def status_of(deployment: Deployment, sets: Sets, now: datetime) -> DeploymentStatus:
    """Make the status that fits these ReplicaSets; counters that are not written when zero are None."""
    everything = sets.all
    ready = available(everything)
    limits = limits_of(deployment)
    if ready >= limits.fewest:
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
        conditions=with_(deployment.status.conditions, condition),
    )


def rollout_status(deployment: Deployment, sets: Sets, now: datetime) -> DeploymentStatus:
    """Make the status amid a rollout: with what is to be said about its progress, and failures of ReplicaSets."""
    status = status_of(deployment, sets, now)
    if not has_deadline(deployment):
        status.conditions = without(status.conditions, PROGRESSING)
    elif not _is_over(deployment, status):
        status.conditions = _progress(deployment, status, sets.new, now)
    failure = failure_of(sets.new, sets.all)
    if failure is None:
        status.conditions = without(status.conditions, FAILURE)
    else:
        status.conditions = with_(status.conditions, failure)
    return status


def paused_condition(deployment: Deployment, now: datetime) -> DeploymentCondition | None:
    """Give the condition that a pause, or the end of one, makes necessary: what waits makes no progress."""
    condition = condition_of(deployment.status.conditions, PROGRESSING)
    reason = condition.reason if condition is not None else ""
    paused = bool(deployment.spec.paused)
    if not has_deadline(deployment) or reason == _TIMED_OUT or paused == (reason == _PAUSED):
        return None
    word, message = (_PAUSED, "Deployment is paused") if paused else ("DeploymentResumed", "Deployment is resumed")
    return new_condition(PROGRESSING, "Unknown", reason=word, message=message, now=now)


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Tell whether every wanted pod is of the present template and available, and no other is left."""
    wanted = replicas(deployment)
    counters = (status.updated_replicas, status.replicas, status.available_replicas)
    seen = (status.observed_generation or 0) >= (deployment.metadata.generation or 0)
    return seen and all((counter or 0) == wanted for counter in counters)


def next_check(deployment: Deployment, now: datetime) -> float | None:
    """Say in how many seconds the deadline of progress is to be looked at; None when it is not."""
    condition = condition_of(deployment.status.conditions, PROGRESSING)
    over = condition is None or condition.reason == _TIMED_OUT or is_complete(deployment, deployment.status)
    if over or not has_deadline(deployment):
        return None
    due = _deadline(deployment, condition)
    return max((due - now).total_seconds(), 0.0) + 1.0 if due is not None else None


def has_deadline(deployment: Deployment) -> bool:
    """Tell whether a rollout has to come forward within a time."""
    return deployment.spec.progress_deadline_seconds not in (None, _NO_LIMIT)


def _is_over(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Tell whether the last rollout has ended: what changes then is no progress of one."""
    condition = condition_of(deployment.status.conditions, PROGRESSING)
    return status.replicas == status.updated_replicas and condition is not None and condition.reason == _FINISHED


def _progress(
    deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, now: datetime
) -> list[DeploymentCondition]:
    who = f'ReplicaSet "{new.name}"' if new is not None else f'Deployment "{deployment.name}"'
    if is_complete(deployment, status):
        message = f"{who} has successfully progressed."
        return with_(status.conditions, new_condition(PROGRESSING, "True", reason=_FINISHED, message=message, now=now))
    if _comes_forward(deployment.status, status):
        message = f"{who} is progressing."
        moved = new_condition(PROGRESSING, "True", reason="ReplicaSetUpdated", message=message, now=now)
        return _refreshed(status.conditions, moved)
    if _has_timed_out(deployment, now):
        message = f"{who} has timed out progressing."
        late = new_condition(PROGRESSING, "False", reason=_TIMED_OUT, message=message, now=now)
        return with_(status.conditions, late)
    return status.conditions


def _refreshed(conditions: Sequence[DeploymentCondition], moved: DeploymentCondition) -> list[DeploymentCondition]:
    """Note progress even where the condition says the same already: its time is what the deadline counts from."""
    old = condition_of(conditions, PROGRESSING)
    if old is not None and old.status == "True":
        moved.last_transition_time = old.last_transition_time
    return [*without(conditions, PROGRESSING), moved]


def _comes_forward(before: DeploymentStatus, after: DeploymentStatus) -> bool:
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
    """Add up the pods on their way out; None when a ReplicaSet that has been looked at does not say."""
    counts = [one.status.terminating_replicas for one in sets if one.status.observed_generation]
    return None if None in counts else sum(count or 0 for count in counts)
