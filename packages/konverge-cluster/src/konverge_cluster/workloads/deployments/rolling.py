"""Rolling updates, decided step by step: how far the new ReplicaSet may scale up and the old ones must scale down.

Each function returns sizes for the current ReplicaSets; called again once they have been reached, it returns the
next step. Rules that hold at every step:

1. The total of requested pods never exceeds the desired replicas plus the surge.
2. Available old pods are removed only when enough others are available.
3. Unavailable old pods are removed first: they would block the rollout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from konverge.k8s.apps.v1 import ReplicaSet
from konverge_cluster.workloads.deployments.sizes import Limits, active, available, size, total

__all__ = ["Step", "by_age", "new_replicas", "scale_down_steps"]

_UNKNOWN_TIME: Final = datetime.min.replace(tzinfo=UTC)


class Step(NamedTuple):
    """The new size of a ReplicaSet, by name. Steps are applied in order; a ReplicaSet may occur in two of them."""

    name: str
    size: int


def new_replicas(limits: Limits, current: int, all_sets: Iterable[ReplicaSet]) -> int:
    """Return the new size of the new ReplicaSet, which has `current` replicas."""
    if not limits.rolling or current >= limits.desired:
        return limits.desired
    available_surge = max(limits.max_replicas - total(all_sets), 0)
    return min(current + available_surge, limits.desired)


def scale_down_steps(limits: Limits, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Step]:
    """Return how the old ReplicaSets scale down now: first by unavailable pods, then by surplus ones."""
    scaled_down = by_age(active(old))
    new_unavailable = size(new) - (new.status.available_replicas or 0)
    surplus = total([*old, new]) - limits.min_available - new_unavailable
    # A ReplicaSet with more available pods than replicas has not observed its last step: its status is outdated.
    outdated = any((one.status.available_replicas or 0) > size(one) for one in scaled_down)
    if not scaled_down or surplus <= 0 or outdated:
        return []
    steps = _remove_unavailable(scaled_down, surplus)
    removable = available([*scaled_down, new]) - limits.min_available
    return steps + _remove_surplus(scaled_down, dict(steps), removable)


def by_age(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Return ReplicaSets, the oldest first, by name among those created in the same second."""
    return sorted(sets, key=lambda one: (one.metadata.creation_timestamp or _UNKNOWN_TIME, one.name))


def _remove_unavailable(scaled_down: Sequence[ReplicaSet], surplus: int) -> list[Step]:
    steps = []
    for one in scaled_down:
        unavailable = min(size(one) - (one.status.available_replicas or 0), surplus)
        if unavailable > 0:
            steps.append(Step(one.name, size(one) - unavailable))
            surplus -= unavailable
    return steps


def _remove_surplus(scaled_down: Sequence[ReplicaSet], sizes: dict[str, int], surplus: int) -> list[Step]:
    steps = []
    for one in scaled_down:
        current = sizes.get(one.name, size(one))
        removed = min(current, surplus)
        if removed > 0:
            steps.append(Step(one.name, current - removed))
            surplus -= removed
    return steps
