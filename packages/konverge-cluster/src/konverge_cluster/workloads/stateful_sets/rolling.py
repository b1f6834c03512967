"""Rolling updates: which pods are deleted next, so that they are created again from the update revision.

Pods are updated from the highest ordinal to the partition, and each waits until those before it are available. With
`maxUnavailable` (a feature that a 1.36 server disables by default) several are updated at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from konverge.k8s.apps.v1 import RollingUpdateStatefulSetStrategy, StatefulSet
from konverge.k8s.core.v1 import Pod
from konverge.objects import scaled
from konverge_cluster.workloads.pods.facts import is_being_deleted
from konverge_cluster.workloads.stateful_sets.identity import revision_of
from konverge_cluster.workloads.stateful_sets.ordinals import replica_count
from konverge_cluster.workloads.stateful_sets.status import is_unavailable

__all__ = ["partition_of", "pods_to_update"]


def partition_of(stateful_set: StatefulSet) -> int:
    """Return how many pods, those with the lowest ordinals, stay at the current revision."""
    return _rolling(stateful_set).partition or 0


def pods_to_update(stateful_set: StatefulSet, replicas: Sequence[Pod], update: str, now: datetime) -> list[Pod]:
    """Return the pods to delete next; `replicas` are all desired pods by ordinal, `update` names the revision."""
    strategy = stateful_set.spec.update_strategy
    if strategy is not None and strategy.type == "OnDelete":
        return []
    candidates = list(reversed(replicas[partition_of(stateful_set) :]))
    if _rolling(stateful_set).max_unavailable is None:
        return _next_one(stateful_set, candidates, update, now)
    outdated = [pod for pod in candidates if _is_outdated(pod, update)]
    unavailable = sum(is_unavailable(stateful_set, pod, now) for pod in replicas)
    return outdated[: max(_max_unavailable(stateful_set) - unavailable, 0)]


def _next_one(stateful_set: StatefulSet, candidates: Sequence[Pod], update: str, now: datetime) -> list[Pod]:
    for pod in candidates:
        if _is_outdated(pod, update):
            return [pod]
        if is_unavailable(stateful_set, pod, now):
            return []
    return []


def _is_outdated(pod: Pod, update: str) -> bool:
    return revision_of(pod) != update and not is_being_deleted(pod)


def _max_unavailable(stateful_set: StatefulSet) -> int:
    """Return how many pods may be unavailable: a percentage is rounded down, but not to zero."""
    limit = _rolling(stateful_set).max_unavailable
    return max(scaled(1 if limit is None else limit, replica_count(stateful_set), round_up=False), 1)


def _rolling(stateful_set: StatefulSet) -> RollingUpdateStatefulSetStrategy:
    strategy = stateful_set.spec.update_strategy
    return (strategy.rolling_update if strategy else None) or RollingUpdateStatefulSetStrategy()
