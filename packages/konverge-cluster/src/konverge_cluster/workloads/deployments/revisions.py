"""Revisions: the annotations that record the order of rollouts on a Deployment and its ReplicaSets.

The ReplicaSet of the current template has the highest revision. A rollback gives the old ReplicaSet a new revision and
adds its earlier ones to its history.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from konverge.k8s.apps.v1 import ReplicaSet
from konverge.objects import Resource
from konverge_cluster.workloads.deployments.sizes import Limits

__all__ = [
    "DESIRED",
    "HISTORY",
    "MAX",
    "REVISION",
    "count_in",
    "highest_revision",
    "replica_annotations",
    "revision_annotations",
    "revision_of",
]

REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAX: Final = "deployment.kubernetes.io/max-replicas"
_OWN: Final = frozenset(
    {
        REVISION,
        HISTORY,
        DESIRED,
        MAX,
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
    }
)
_MAX_HISTORY: Final = 2000
_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_COUNT: Final = re.compile(r"[0-9]+", re.ASCII)


def revision_of(obj: Resource) -> int | None:
    """Return the revision of an object, 0 without one; None if its annotation is not a number."""
    text = obj.metadata.annotations.get(REVISION, "0")
    return int(text) if _NUMBER.fullmatch(text) else None


def highest_revision(sets: Iterable[ReplicaSet]) -> int:
    """Return the highest revision of ReplicaSets; invalid ones are ignored."""
    return max((revision_of(one) or 0 for one in sets), default=0)


def count_in(replica_set: ReplicaSet, annotation: str) -> int | None:
    """Return a number of pods from an annotation; None without a valid one."""
    text = replica_set.metadata.annotations.get(annotation, "")
    count = int(text) if _COUNT.fullmatch(text) else None
    return count if count is None or count < 2**31 else None


def revision_annotations(
    annotations: Mapping[str, str], deployment_annotations: Mapping[str, str], revision: int
) -> dict[str, str]:
    """Return the annotations of the new ReplicaSet: those of its Deployment, and at least `revision`.

    An invalid revision is left unchanged.
    """
    copied = {name: value for name, value in deployment_annotations.items() if name not in _OWN}
    result = {**annotations, **copied}
    old = annotations.get(REVISION, "")
    if old and not _NUMBER.fullmatch(old):
        return result
    if int(old or 0) >= revision:
        return result
    result[REVISION] = str(revision)
    if REVISION in annotations:
        result[HISTORY] = _append_history(annotations.get(HISTORY, ""), old)
    return result


def replica_annotations(annotations: Mapping[str, str], limits: Limits) -> dict[str, str]:
    """Return annotations with the desired and the maximum replicas of the Deployment."""
    return {**annotations, DESIRED: str(limits.desired), MAX: str(limits.max_replicas)}


def _append_history(history: str, revision: str) -> str:
    """Append a revision, and drop the oldest ones beyond the length limit."""
    if not history:
        return revision
    revisions = [*history.split(","), revision]
    while len(",".join(revisions)) > _MAX_HISTORY:
        revisions.pop(0)
    return ",".join(revisions)
