"""The limits on the number of pods of a Deployment: its replicas, the surge and the unavailability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from konverge.k8s.apps.v1 import Deployment, ReplicaSet, RollingUpdateDeployment
from konverge.objects import scaled

__all__ = ["Limits", "active", "available", "limits_of", "replicas", "size", "total"]


@dataclass(frozen=True)
class Limits:
    """The desired replicas of a Deployment, and how many more or fewer pods there may be during a rolling update."""

    desired: int
    surge: int = 0
    unavailable: int = 0
    rolling: bool = True

    @property
    def max_replicas(self) -> int:
        """The maximum number of pods."""
        return self.desired + self.surge

    @property
    def min_available(self) -> int:
        """The minimum number of available pods."""
        return self.desired - self.unavailable


def limits_of(deployment: Deployment) -> Limits:
    """Return the limits: the surge is rounded up, unavailability down, and they cannot both be zero."""
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
    """Return the desired replicas of a Deployment."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def size(replica_set: ReplicaSet) -> int:
    """Return the desired replicas of a ReplicaSet."""
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def total(sets: Iterable[ReplicaSet]) -> int:
    """Return the sum of desired replicas of ReplicaSets."""
    return sum(map(size, sets))


def available(sets: Iterable[ReplicaSet]) -> int:
    """Return the sum of available pods of ReplicaSets."""
    return sum(one.status.available_replicas or 0 for one in sets)


def active(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Return the ReplicaSets with desired replicas."""
    return [one for one in sets if size(one) > 0]
