"""Old ReplicaSets that exceed the revision history limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from konverge.k8s.apps.v1 import Deployment, ReplicaSet
from konverge_cluster.workloads.deployments.revisions import revision_of
from konverge_cluster.workloads.deployments.rolling import by_age
from konverge_cluster.workloads.deployments.sizes import size
from konverge_cluster.workloads.pods.facts import is_being_deleted

__all__ = ["cleanup_candidates"]

_NO_LIMIT: Final = 2**31 - 1


def cleanup_candidates(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Return the old ReplicaSets beyond the history limit, those with the lowest revisions, if they have no pods."""
    limit = deployment.spec.revision_history_limit
    if limit is None or limit == _NO_LIMIT:
        return []
    existing = [one for one in old if not is_being_deleted(one)]
    ordered = sorted(by_age(existing), key=lambda one: revision_of(one) or 0)
    surplus = ordered[: max(len(existing) - limit, 0)]
    return [one for one in surplus if _is_empty(one)]


def _is_empty(one: ReplicaSet) -> bool:
    observed = (one.metadata.generation or 0) <= (one.status.observed_generation or 0)
    return observed and not one.status.replicas and not size(one)
