"""Revisions: the annotations by which a Deployment and its ReplicaSets remember the order of rollouts.

The ReplicaSet of the present template has the highest number. Going back to an older template gives its ReplicaSet a
new number, and the numbers that it had before are kept beside it.
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
    "numbered",
    "revision_of",
    "sized",
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
_LONGEST_HISTORY: Final = 2000
_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_COUNT: Final = re.compile(r"[0-9]+", re.ASCII)


def revision_of(obj: Resource) -> int | None:
    """Give the revision of an object, 0 without one; None when its annotation is no number."""
    text = obj.metadata.annotations.get(REVISION, "0")
    return int(text) if _NUMBER.fullmatch(text) else None


def highest_revision(sets: Iterable[ReplicaSet]) -> int:
    """Give the highest revision of ReplicaSets; those that cannot be read do not count."""
    return max((revision_of(one) or 0 for one in sets), default=0)


def count_in(replica_set: ReplicaSet, annotation: str) -> int | None:
    """Read a number of pods from an annotation; None when there is none that can be read."""
    text = replica_set.metadata.annotations.get(annotation, "")
    count = int(text) if _COUNT.fullmatch(text) else None
    return count if count is None or count < 2**31 else None


def numbered(annotations: Mapping[str, str], of_deployment: Mapping[str, str], revision: int) -> dict[str, str]:
    """Give the annotations of the present ReplicaSet: those of its Deployment, and a number no lower than `revision`.

    A revision that cannot be read is left as it is.
    """
    copied = {name: value for name, value in of_deployment.items() if name not in _OWN}
    result = {**annotations, **copied}
    old = annotations.get(REVISION, "")
    if old and not _NUMBER.fullmatch(old):
        return result
    if int(old or 0) >= revision:
        return result
    result[REVISION] = str(revision)
    if REVISION in annotations:
        result[HISTORY] = _longer_history(annotations.get(HISTORY, ""), old)
    return result


def sized(annotations: Mapping[str, str], limits: Limits) -> dict[str, str]:
    """Give annotations that say how many pods the Deployment wants and may have."""
    return {**annotations, DESIRED: str(limits.desired), MAX: str(limits.most)}


def _longer_history(history: str, revision: str) -> str:
    """Add a revision, and drop the oldest ones for which there is no room."""
    if not history:
        return revision
    kept = [*history.split(","), revision]
    while len(",".join(kept)) > _LONGEST_HISTORY:
        kept.pop(0)
    return ",".join(kept)
