"""How many pods a Deployment may have: what it asks for, and how far it may go above and below meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from konverge.k8s.apps.v1 import Deployment, ReplicaSet, RollingUpdateDeployment
from konverge.objects import scaled

__all__ = ["Limits", "active", "available", "limits_of", "replicas", "size", "total"]


@dataclass(frozen=True)
class Limits:
    """The numbers of a Deployment: wanted replicas, and how many more or fewer there may be while it rolls."""

    desired: int
    surge: int = 0
    unavailable: int = 0
    rolling: bool = True

    @property
    def most(self) -> int:
        """How many pods there may be."""
        return self.desired + self.surge

    @property
    def fewest(self) -> int:
        """How many pods must be available."""
        return self.desired - self.unavailable


def limits_of(deployment: Deployment) -> Limits:
    """Work out the numbers: a surge is rounded up, unavailability down, and both may not come out as nothing."""
    desired = replicas(deployment)
    strategy = deployment.spec.strategy
    if strategy is not None and strategy.type == "Recreate":
        return Limits(desired, rolling=False)
    rolling = (strategy.rolling_update if strategy else None) or RollingUpdateDeployment()
    surge = scaled(rolling.max_surge or 0, desired, round_up=True)
    unavailable = scaled(rolling.max_unavailable or 0, desired, round_up=False)
    if not surge and not unavailable:
        unavailable = 1
    return Limits(desired, surge, min(unavailable, desired))


def replicas(deployment: Deployment) -> int:
    """Say how many pods a Deployment asks for."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def size(replica_set: ReplicaSet) -> int:
    """Say how many pods a ReplicaSet asks for."""
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def total(sets: Iterable[ReplicaSet]) -> int:
    """Add up what ReplicaSets ask for."""
    return sum(map(size, sets))


def available(sets: Iterable[ReplicaSet]) -> int:
    """Add up the available pods of ReplicaSets."""
    return sum(one.status.available_replicas or 0 for one in sets)


def active(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Give the ReplicaSets that ask for pods."""
    return [one for one in sets if size(one) > 0]
