"""A rolling update, decided step by step: how far the new ReplicaSet may grow and the old ones must shrink.

Each function looks at the ReplicaSets as they are and gives sizes; who asks again after the world has followed gets the
next step. Rules that hold at every step:

1. Never more pods are asked for than the Deployment wants and its surge.
2. Old pods that are available are given up only when enough others are available.
3. Old pods that are not available go first: they would stand in the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from konverge.k8s.apps.v1 import ReplicaSet
from konverge_cluster.workloads.deployments.sizes import Limits, active, available, size, total

__all__ = ["Step", "by_age", "new_size", "old_steps"]

_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class Step(NamedTuple):
    """What a ReplicaSet shall ask for, by name. Steps are taken in order; one ReplicaSet may be in two of them."""

    name: str
    size: int


def new_size(limits: Limits, current: int, all_sets: Iterable[ReplicaSet]) -> int:
    """Say how many pods the new ReplicaSet shall ask for, where it asks for `current` of all that are asked for."""
    if not limits.rolling or current >= limits.desired:
        return limits.desired
    room = max(limits.most - total(all_sets), 0)
    return min(current + room, limits.desired)


def old_steps(limits: Limits, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Step]:
    """Say how the old ReplicaSets shrink now: by pods that are not available, and then by those beyond need."""
    shrinking = by_age(active(old))
    new_unavailable = size(new) - (new.status.available_replicas or 0)
    spare = total([*old, new]) - limits.fewest - new_unavailable
    # A ReplicaSet with more available pods than it asks for has not followed its last step: what it says is too much.
    behind = any((one.status.available_replicas or 0) > size(one) for one in shrinking)
    if not shrinking or spare <= 0 or behind:
        return []
    steps = _without_ill(shrinking, spare)
    beyond_need = available([*shrinking, new]) - limits.fewest
    return steps + _without_spare(shrinking, dict(steps), beyond_need)


def by_age(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Order ReplicaSets, the oldest first, by name among those made in the same second."""
    return sorted(sets, key=lambda one: (one.metadata.creation_timestamp or _NEVER, one.name))


def _without_ill(shrinking: Sequence[ReplicaSet], spare: int) -> list[Step]:
    steps = []
    for one in shrinking:
        ill = min(size(one) - (one.status.available_replicas or 0), spare)
        if ill > 0:
            steps.append(Step(one.name, size(one) - ill))
            spare -= ill
    return steps


def _without_spare(shrinking: Sequence[ReplicaSet], sizes: dict[str, int], spare: int) -> list[Step]:
    steps = []
    for one in shrinking:
        current = sizes.get(one.name, size(one))
        removed = min(current, spare)
        if removed > 0:
            steps.append(Step(one.name, current - removed))
            spare -= removed
    return steps
