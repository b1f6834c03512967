"""Topology labels: zone and region of a node, which override labels of a pod when the pod is assigned to the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from konverge_cluster.api.strategy import Document

__all__ = ["topology_labels"]

_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def topology_labels(lookup: Callable[[str, str, str, str], Document | None], node: str) -> dict[str, str]:
    """Return the zone and region labels of a node that are set; an empty dict for a missing node."""
    found = lookup("", "nodes", "", node) if node else None
    labels = (found or {}).get("metadata", {}).get("labels") or {}
    return {name: labels[name] for name in _LABELS if name in labels}
