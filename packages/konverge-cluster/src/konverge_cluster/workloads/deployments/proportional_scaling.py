"""Proportional scaling: a change of replicas during a rollout is divided among the ReplicaSets by their size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from konverge.k8s.apps.v1 import Deployment, ReplicaSet
from konverge_cluster.workloads.deployments.revisions import MAX, count_in
from konverge_cluster.workloads.deployments.rolling import Step, by_age
from konverge_cluster.workloads.deployments.sizes import Limits, active, size, total

__all__ = ["proportional_steps"]

_HALF: Final = 2


def proportional_steps(deployment: Deployment, limits: Limits, sets: Sequence[ReplicaSet]) -> list[Step]:
    """Return the replicas of each active ReplicaSet so that together they use what the Deployment may have.

    Larger ones come first; among equals the newer when scaling up and the older when scaling down. The first
    gets the rounding difference.
    """
    allowed = limits.max_replicas if limits.desired > 0 else 0
    to_add = allowed - total(active(sets))
    ordered = _ordered(active(sets), scaling_up=to_add > 0)
    left = to_add
    sizes = []
    for one in ordered:
        share = _share(one, deployment, limits, left=left)
        sizes.append(size(one) + share)
        left -= share
    if ordered and to_add:
        sizes[0] = max(sizes[0] + left, 0)
    return [Step(one.name, desired) for one, desired in zip(ordered, sizes, strict=True)]


def _ordered(sets: Sequence[ReplicaSet], *, scaling_up: bool) -> list[ReplicaSet]:
    oldest_first = by_age(sets)
    if scaling_up:
        oldest_first.reverse()
    return sorted(oldest_first, key=size, reverse=True)


def _share(one: ReplicaSet, deployment: Deployment, limits: Limits, *, left: int) -> int:
    """Return how many pods a ReplicaSet gets (loses, if negative), limited by what is left."""
    if not left:
        return 0
    desired = _fraction(one, deployment, limits)
    return min(desired, left) if left > 0 else max(desired, left)


def _fraction(one: ReplicaSet, deployment: Deployment, limits: Limits) -> int:
    if not limits.desired:
        return -size(one)
    before = count_in(one, MAX) or deployment.status.replicas or 0
    return _rounded(size(one) * limits.max_replicas, before) - size(one) if before else 0


def _rounded(number: int, divisor: int) -> int:
    """Divide and round to the nearest, halves up."""
    return (_HALF * number + divisor) // (_HALF * divisor)
