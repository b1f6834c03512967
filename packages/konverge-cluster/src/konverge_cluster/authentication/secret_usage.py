"""The label of a token Secret that says when its token was last used: one write a day."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from konverge_cluster.api.cluster import Cluster, key_of
from konverge_cluster.api.strategy import Document
from konverge_cluster.api.writes import endpoint_of, entry_of
from konverge_cluster.patches import track_update

__all__ = ["mark_used"]

_LABEL: Final = "kubernetes.io/legacy-token-last-used"
_MANAGER: Final = "kube-apiserver"


def mark_used(cluster: Cluster, secret: Document) -> None:
    """Store the date of today in the label of a Secret, unless it is there; `secret` is the stored document."""
    today = datetime.fromtimestamp(cluster.clock(), UTC).date().isoformat()
    strategy = cluster.registry.find("", "v1", "secrets")
    metadata = secret["metadata"]
    if strategy is None or metadata.get("labels", {}).get(_LABEL) == today:
        return
    kind = strategy.info.kind
    old = secret | {"kind": kind.kind, "apiVersion": kind.api_version}
    new: Document = old | {"metadata": metadata | {"labels": metadata.get("labels", {}) | {_LABEL: today}}}
    endpoint = endpoint_of(cluster, strategy, "")
    new["metadata"]["managedFields"] = track_update(old, new, manager=_MANAGER, endpoint=endpoint, now=cluster.now())
    key = key_of(metadata["namespace"], metadata["name"])
    entry = entry_of(key, new, strategy.encoding_version, cluster.storage.next_revision)
    cluster.storage.put(cluster.collection(strategy), entry)
