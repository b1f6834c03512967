"""The status of a ReplicaSet, derived from its pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from konverge.k8s.apps.v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from konverge.k8s.core.v1 import Pod
from konverge.objects import LabelSelector, ObjectMeta
from konverge_cluster.clock import truncate_to_seconds
from konverge_cluster.workloads.pods.facts import is_available, is_ready

__all__ = ["FAILURE", "Failure", "status_of"]

FAILURE: Final = "ReplicaFailure"


@dataclass(frozen=True)
class Failure:
    """Why pods could not be created or deleted."""

    reason: str
    message: str


def status_of(
    replica_set: ReplicaSet, active: Sequence[Pod], *, terminating: int, failure: Failure | None, now: datetime
) -> ReplicaSetStatus:
    """Return the status for these pods; counters that are omitted when zero are None."""
    template = replica_set.spec.template.metadata or ObjectMeta()
    template_selector = LabelSelector.of(template.labels)
    min_ready_seconds = replica_set.spec.min_ready_seconds or 0
    return ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=sum(template_selector.matches(pod.metadata.labels) for pod in active) or None,
        ready_replicas=sum(map(is_ready, active)) or None,
        available_replicas=sum(is_available(pod, min_ready_seconds, now) for pod in active) or None,
        terminating_replicas=terminating,
        observed_generation=replica_set.metadata.generation,
        conditions=_conditions(replica_set.status.conditions, failure, now),
    )


def _conditions(
    old: Sequence[ReplicaSetCondition], failure: Failure | None, now: datetime
) -> list[ReplicaSetCondition]:
    """Keep the failure that was reported first until there is none; other conditions are kept."""
    if failure is None:
        return [condition for condition in old if condition.type != FAILURE]
    if any(condition.type == FAILURE for condition in old):
        return list(old)
    reported = ReplicaSetCondition(
        type=FAILURE,
        status="True",
        reason=failure.reason,
        message=failure.message,
        last_transition_time=truncate_to_seconds(now),
    )
    return [*old, reported]
