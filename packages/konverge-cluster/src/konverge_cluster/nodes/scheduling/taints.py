"""Unschedulable nodes and taints: a filter for each, and a score for taints that only prefer no pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from konverge_cluster.nodes.scheduling.scores import normalize
from konverge_cluster.nodes.scheduling.snapshot import NodeCheck, NodeInfo, PodInfo, Rejection, Snapshot

__all__ = ["filter_taints", "filter_unschedulable", "score_taints", "tolerates_node", "tolerates_taint"]

_REPELLING_EFFECTS: Final = ("NoSchedule", "NoExecute")
_UNSCHEDULABLE: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def filter_unschedulable(pod: PodInfo, _: Snapshot) -> NodeCheck | None:
    """Reject nodes that are unschedulable, unless the pod tolerates the taint that says the same."""
    if tolerates_taint(pod.spec.get("tolerations") or (), _UNSCHEDULABLE):
        return None
    rejected = (Rejection("node(s) were unschedulable"),)
    return lambda node: rejected if node.unschedulable else ()


def filter_taints(pod: PodInfo, _: Snapshot) -> NodeCheck:
    """Reject nodes with a taint that the pod does not tolerate."""
    rejected = (Rejection("node(s) had untolerated taint(s)"),)
    return lambda node: () if tolerates_node(pod, node) else rejected


def tolerates_node(pod: PodInfo, node: NodeInfo) -> bool:
    """Report whether a pod tolerates every taint of a node that repels pods."""
    tolerations = pod.spec.get("tolerations") or ()
    return all(tolerates_taint(tolerations, one) for one in node.taints if one["effect"] in _REPELLING_EFFECTS)


def score_taints(pod: PodInfo, _: Snapshot, nodes: Sequence[NodeInfo]) -> Mapping[str, int] | None:
    """Prefer nodes with fewer taints of effect PreferNoSchedule that the pod does not tolerate."""
    tolerations = pod.spec.get("tolerations") or ()
    counts = {
        node.name: sum(
            one["effect"] == "PreferNoSchedule" and not tolerates_taint(tolerations, one) for one in node.taints
        )
        for node in nodes
    }
    return normalize(counts, reverse=True) if any(counts.values()) else None


def tolerates_taint(tolerations: Iterable[Mapping[str, Any]], taint: Mapping[str, Any]) -> bool:
    """Report whether one of the tolerations tolerates a taint."""
    return any(_tolerates(one, taint) for one in tolerations)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect", "") not in ("", taint["effect"]):
        return False
    if toleration.get("key", "") not in ("", taint["key"]):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
