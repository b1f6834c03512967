"""Which node a pod fits on: the first filter that rejects a node says why, and scores rank the nodes that fit.

The filters are those of kube-scheduler, in its order and with its texts. Of several nodes with the same score the one
with the fewest pods is selected, then the first by name. Not implemented: preemption (a pod that fits nowhere waits,
whatever its priority), scores for free resources and images, and the default constraints that spread the pods of a
Service or ReplicaSet softly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from konverge_cluster.nodes.scheduling.node_affinity import filter_node_affinity, filter_node_names, score_node_affinity
from konverge_cluster.nodes.scheduling.pod_affinity import filter_pod_affinity, score_pod_affinity
from konverge_cluster.nodes.scheduling.resources import filter_host_ports, filter_resources
from konverge_cluster.nodes.scheduling.snapshot import (
    Filter,
    NodeCheck,
    NodeInfo,
    PodInfo,
    PodRejected,
    Rejection,
    Score,
    Snapshot,
)
from konverge_cluster.nodes.scheduling.taints import filter_taints, filter_unschedulable, score_taints
from konverge_cluster.nodes.scheduling.topology_spread import filter_topology_spread, score_topology_spread
from konverge_cluster.nodes.scheduling.volumes import filter_volumes

__all__ = ["FILTERS", "SCORES", "Unschedulable", "select_node"]

FILTERS: Final[Sequence[Filter]] = (
    filter_node_names,
    filter_unschedulable,
    filter_taints,
    filter_node_affinity,
    filter_host_ports,
    filter_resources,
    filter_volumes,
    filter_topology_spread,
    filter_pod_affinity,
)
"""In the order of kube-scheduler: the first that rejects a node is reported."""

SCORES: Final[Sequence[tuple[int, Score]]] = (
    (3, score_taints),
    (2, score_node_affinity),
    (2, score_topology_spread),
    (2, score_pod_affinity),
)
"""With their weights."""

_NO_CLAIMS: Final = "no new claims to deallocate"  # the other way to make room, of dynamic resource allocation


@dataclass(frozen=True)
class Unschedulable:
    """The result when no node fits, with the reasons."""

    message: str


def select_node(pod: PodInfo, snapshot: Snapshot) -> str | Unschedulable:
    """Select a node for a pod."""
    if not snapshot.nodes:
        return Unschedulable("no nodes available to schedule pods")
    try:
        checks = [check for one in FILTERS if (check := one(pod, snapshot)) is not None]
    except PodRejected as error:
        # kube-scheduler looks for claims to deallocate, has not counted them yet, and reports that as "not found".
        return Unschedulable(f"0/{len(snapshot.nodes)} nodes are available: {error}. not found")
    rejections = {node.name: _first_rejections(checks, node) for node in snapshot.nodes}
    feasible = [node for node in snapshot.nodes if not rejections[node.name]]
    if feasible:
        return _best(pod, snapshot, feasible)
    reasons = Counter(one.reason for every in rejections.values() for one in every)
    return Unschedulable(_explain(_histogram(reasons), rejections, pod, len(snapshot.nodes)))


def _first_rejections(checks: Sequence[NodeCheck], node: NodeInfo) -> Sequence[Rejection]:
    return next((found for check in checks if (found := check(node))), ())


def _best(pod: PodInfo, snapshot: Snapshot, feasible: Sequence[NodeInfo]) -> str:
    if len(feasible) == 1:
        return feasible[0].name
    totals = Counter(dict.fromkeys((node.name for node in feasible), 0))
    for weight, score in SCORES:
        for name, points in (score(pod, snapshot, feasible) or {}).items():
            totals[name] += weight * points
    return min(totals, key=lambda name: (-totals[name], snapshot.used.get(name, {}).get("pods", 0), name))


def _explain(reasons: str, rejections: Mapping[str, Sequence[Rejection]], pod: PodInfo, count: int) -> str:
    """Return the message of a pod that fits nowhere, with the reason why preemption does not help either."""
    available = f"0/{count} nodes are available:"
    prefix = f"{available} {reasons}. {_NO_CLAIMS}, preemption:"
    if pod.spec.get("preemptionPolicy") == "Never":
        return f"{prefix} not eligible due to preemptionPolicy=Never."
    without_victims = sum(all(one.resolvable for one in every) for every in rejections.values())
    victims = Counter(
        {
            "No preemption victims found for incoming pod": without_victims,
            "Preemption is not helpful for scheduling": count - without_victims,
        }
    )
    return f"{prefix} {available} {_histogram(victims)}."


def _histogram(reasons: Counter[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items() if count))
