"""Scaling a Deployment amid a rollout: what comes or goes is shared among its ReplicaSets by their size."""

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
    """Say what each active ReplicaSet shall ask for, so that together they fill what the Deployment may have.

    The larger ones are served first, among equals the newer when growing and the older when shrinking, and the first
    gets what rounding leaves over.
    """
    allowed = limits.most if limits.desired > 0 else 0
    to_add = allowed - total(active(sets))
    ordered = _ordered(active(sets), growing=to_add > 0)
    left = to_add
    sizes = []
    for one in ordered:
        share = _share(one, deployment, limits, left=left)
        sizes.append(size(one) + share)
        left -= share
    if ordered and to_add:
        sizes[0] = max(sizes[0] + left, 0)
    return [Step(one.name, wanted) for one, wanted in zip(ordered, sizes, strict=True)]


def _ordered(sets: Sequence[ReplicaSet], *, growing: bool) -> list[ReplicaSet]:
    aged = by_age(sets)
    if growing:
        aged.reverse()
    return sorted(aged, key=size, reverse=True)


def _share(one: ReplicaSet, deployment: Deployment, limits: Limits, *, left: int) -> int:
    """Give the pods that a ReplicaSet gets (or loses, below 0), within what is left to be shared."""
    if not left:
        return 0
    wanted = _fraction(one, deployment, limits)
    return min(wanted, left) if left > 0 else max(wanted, left)


def _fraction(one: ReplicaSet, deployment: Deployment, limits: Limits) -> int:
    if not limits.desired:
        return -size(one)
    before = count_in(one, MAX) or deployment.status.replicas or 0
    return _rounded(size(one) * limits.most, before) - size(one) if before else 0


def _rounded(number: int, divisor: int) -> int:
    """Divide and round to the nearest, halves up."""
    return (_HALF * number + divisor) // (_HALF * divisor)
