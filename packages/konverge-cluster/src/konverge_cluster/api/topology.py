"""Where a node is: the labels that its pods get when they are given to it, over those that they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from konverge_cluster.api.strategy import Document

__all__ = ["topology_labels"]

_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def topology_labels(lookup: Callable[[str, str, str, str], Document | None], node: str) -> dict[str, str]:
    """Give zone and region of a node, as far as it says them; nothing for a node that is not there."""
    found = lookup("", "nodes", "", node) if node else None
    labels = (found or {}).get("metadata", {}).get("labels") or {}
    return {name: labels[name] for name in _LABELS if name in labels}
