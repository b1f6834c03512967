"""Deployments whose replicas belong to an autoscaler: exactly one party sets the number at every moment."""

from __future__ import annotations

from typing import Protocol

from konverge import Context
from konverge.k8s.apps.v1 import Deployment
from konverge_operators.manifests import Json

__all__ = ["Scaling", "autoscaler_spec", "initial_replicas", "replicas_to_apply"]


class Scaling(Protocol):
    """The bounds of the replicas, and the CPU utilization to keep, in percent of the requested CPU."""

    min_replicas: int
    max_replicas: int
    cpu_percent: int


def autoscaler_spec(deployment: str, scaling: Scaling) -> Json:
    """Return the spec of the autoscaler of a Deployment."""
    target = {"type": "Utilization", "averageUtilization": scaling.cpu_percent}
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment},
        "minReplicas": scaling.min_replicas,
        "maxReplicas": scaling.max_replicas,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }


def initial_replicas(desired: int, scaling: Scaling) -> int:
    """Return the replicas of a new Deployment: as many as desired, within the bounds."""
    return max(scaling.min_replicas, min(desired, scaling.max_replicas))


async def replicas_to_apply(
    ctx: Context, deployment: str, desired: int, scaling: Scaling | None, *, manager: str
) -> int | None:
    """Return the replicas of a Deployment to apply; None when they belong to the autoscaler.

    The field of an existing Deployment is handed over to `manager` before it is omitted: the number does not change.
    """
    if scaling is None:
        return desired
    existing = await ctx.get(Deployment, deployment)
    if existing is None:
        return initial_replicas(desired, scaling)
    await ctx.hand_over(existing, ".spec.replicas", to=manager)
    return None
