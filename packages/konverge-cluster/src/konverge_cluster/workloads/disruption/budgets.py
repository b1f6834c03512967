"""The status of a PodDisruptionBudget, derived from its pods and the scale of their controllers.

A pod is healthy when it is ready. A pod whose eviction was accepted counts as unhealthy from then on, for two minutes
or until it is being deleted: the eviction subresource records it in `disruptedPods`, since it is faster than a watch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from konverge.k8s.core.v1 import Pod
from konverge.k8s.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from konverge.objects import Condition, scaled, set_condition
from konverge_cluster.clock import truncate_to_seconds
from konverge_cluster.workloads.pods.facts import is_being_deleted, is_ready

__all__ = ["Disruptions", "Scale", "desired_healthy", "disrupted_pods", "failed_status", "needs_scale", "status_of"]

_DELETION_TIMEOUT: Final = timedelta(minutes=2)
_CONDITION: Final = "DisruptionAllowed"


@dataclass(frozen=True)
class Scale:
    """The replicas that the controllers of some pods desire, and the names of pods without a controller."""

    replicas: int
    unmanaged: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Disruptions:
    """Pods whose eviction was accepted and that are not being deleted yet, by name, with the time of the eviction.

    `expired` are pods whose deletion never came. `until_expiry` is in how many seconds the next one is expired.
    """

    pending: dict[str, datetime] = field(default_factory=dict)
    expired: list[Pod] = field(default_factory=list)
    until_expiry: float | None = None


def needs_scale(spec: PodDisruptionBudgetSpec) -> bool:
    """Report whether a budget depends on the desired replicas: all do except those with a number in minAvailable."""
    return spec.max_unavailable is not None or isinstance(spec.min_available, str)


def desired_healthy(spec: PodDisruptionBudgetSpec, replicas: int) -> int:
    """Return the minimum number of healthy pods; percentages are rounded up."""
    if spec.max_unavailable is not None:
        return max(replicas - scaled(spec.max_unavailable, replicas, round_up=True), 0)
    return scaled(spec.min_available or 0, replicas, round_up=True)


def disrupted_pods(budget: PodDisruptionBudget, pods: Sequence[Pod], now: datetime) -> Disruptions:
    """Return the evictions that still count; those of pods that are gone or being deleted do not."""
    pending: dict[str, datetime] = {}
    expired = []
    for pod in pods:
        evicted = budget.status.disrupted_pods.get(pod.name)
        if evicted is None or is_being_deleted(pod):
            continue
        if evicted + _DELETION_TIMEOUT < now:
            expired.append(pod)
        else:
            pending[pod.name] = evicted
    waits = [(evicted + _DELETION_TIMEOUT - now).total_seconds() for evicted in pending.values()]
    return Disruptions(pending, expired, min(waits, default=None))


def status_of(
    budget: PodDisruptionBudget, pods: Sequence[Pod], scale: Scale, *, disruptions: Disruptions, now: datetime
) -> PodDisruptionBudgetStatus:
    """Return the status for these pods."""
    desired = desired_healthy(budget.spec, scale.replicas)
    healthy = sum(_is_healthy(pod, disruptions, now) for pod in pods)
    # A budget without pods allows nothing, so that its first pods are protected before they are counted.
    allowed = max(healthy - desired, 0) if scale.replicas > 0 else 0
    generation = budget.metadata.generation
    return PodDisruptionBudgetStatus(
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=scale.replicas,
        disruptions_allowed=allowed,
        disrupted_pods=disruptions.pending,
        observed_generation=generation,
        conditions=_conditions(
            budget,
            allowed=allowed > 0,
            reason="SufficientPods" if allowed else "InsufficientPods",
            generation=generation,
            now=now,
        ),
    )


def failed_status(budget: PodDisruptionBudget, message: str, now: datetime) -> PodDisruptionBudgetStatus:
    """Return the status of a budget that cannot be computed: it allows no disruption, the rest is kept."""
    old = budget.status
    generation = old.observed_generation
    return PodDisruptionBudgetStatus(
        current_healthy=old.current_healthy,
        desired_healthy=old.desired_healthy,
        expected_pods=old.expected_pods,
        disruptions_allowed=0,
        disrupted_pods=old.disrupted_pods,
        observed_generation=generation,
        conditions=_conditions(
            budget, allowed=False, reason="SyncFailed", message=message, generation=generation, now=now
        ),
    )


def _is_healthy(pod: Pod, disruptions: Disruptions, now: datetime) -> bool:
    evicted = disruptions.pending.get(pod.name)
    leaves_soon = evicted is not None and evicted + _DELETION_TIMEOUT > now
    return is_ready(pod) and not is_being_deleted(pod) and not leaves_soon


def _conditions(
    budget: PodDisruptionBudget,
    *,
    allowed: bool,
    reason: str,
    generation: int | None,
    now: datetime,
    message: str = "",
) -> list[Condition]:
    conditions = list(budget.status.conditions)
    set_condition(
        conditions,
        _CONDITION,
        allowed,
        reason=reason,
        message=message,
        observed_generation=generation or None,
        now=truncate_to_seconds(now),
    )
    return conditions
