"""Topology spread constraints: a filter for those that must hold, a score for those that may be violated.

The skew of a domain (the nodes with one value of the topology key) is how many more matching pods it has than the
domain with the fewest. Pods that are terminating, or in another namespace, do not count. Rules:

1. Only nodes with the topology keys of all constraints form domains. By default nodes that the node affinity of the
   pod excludes do not count, and those with taints do (`nodeAffinityPolicy`, `nodeTaintsPolicy`).
2. With fewer domains than `minDomains` the fewest pods in a domain are taken to be 0.
3. An empty selector counts no pods.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from konverge.objects import LabelSelector
from konverge_cluster.nodes.scheduling.node_affinity import matches_node
from konverge_cluster.nodes.scheduling.snapshot import MAX_SCORE, NodeCheck, NodeInfo, PodInfo, Rejection, Snapshot
from konverge_cluster.nodes.scheduling.taints import tolerates_node

__all__ = ["filter_topology_spread", "score_topology_spread"]

_HOSTNAME: Final = "kubernetes.io/hostname"
_SKEWED: Final = (Rejection("node(s) didn't match pod topology spread constraints", resolvable=True),)
_NO_LABEL: Final = (Rejection("node(s) didn't match pod topology spread constraints (missing required label)"),)


@dataclass(frozen=True)
class _Constraint:
    key: str
    max_skew: int
    selector: LabelSelector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    @classmethod
    def of(cls, constraint: Mapping[str, Any], labels: Mapping[str, str]) -> _Constraint:
        keys = [key for key in constraint.get("matchLabelKeys") or () if key in labels]
        selector = LabelSelector.from_spec(constraint.get("labelSelector"))
        if not selector.selects_nothing:
            added = LabelSelector.of({key: labels[key] for key in keys}).requirements
            selector = LabelSelector((*selector.requirements, *added))
        return cls(
            constraint["topologyKey"],
            constraint["maxSkew"],
            selector,
            constraint.get("minDomains") or 1,
            constraint.get("nodeAffinityPolicy", "Honor") == "Honor",
            constraint.get("nodeTaintsPolicy", "Ignore") == "Honor",
        )

    def includes(self, pod: PodInfo, node: NodeInfo) -> bool:
        """Report whether a node counts for this pod."""
        if self.honors_affinity and not matches_node(pod, node):
            return False
        return not self.honors_taints or tolerates_node(pod, node)

    def count(self, pod: PodInfo, node: NodeInfo, snapshot: Snapshot) -> int:
        """Return the number of pods on a node that the selector matches."""
        if not self.selector.requirements:
            return 0
        return sum(
            not one.terminating and one.namespace == pod.namespace and self.selector.matches(one.labels)
            for one in snapshot.pods.get(node.name, ())
        )


def filter_topology_spread(pod: PodInfo, snapshot: Snapshot) -> NodeCheck | None:
    """Reject nodes on which the pod would make the skew of a DoNotSchedule constraint too large."""
    constraints = _constraints(pod, "DoNotSchedule")
    if not constraints:
        return None
    nodes = [node for node in snapshot.nodes if _has_keys(node, constraints)]
    counts = [_counts(one, pod, nodes, snapshot) for one in constraints]

    def check(node: NodeInfo) -> Sequence[Rejection]:
        for one, found in zip(constraints, counts, strict=True):
            if one.key not in node.labels:
                return _NO_LABEL
            fewest = min(found.values(), default=0) if len(found) >= one.min_domains else 0
            here = found.get(node.labels[one.key], 0) + one.selector.matches(pod.labels)
            if here - fewest > one.max_skew:
                return _SKEWED
        return ()

    return check


def score_topology_spread(pod: PodInfo, snapshot: Snapshot, nodes: Sequence[NodeInfo]) -> Mapping[str, int] | None:
    """Prefer nodes in domains with few matching pods, by the ScheduleAnyway constraints."""
    constraints = _constraints(pod, "ScheduleAnyway")
    if not constraints:
        return None
    scored = [node for node in nodes if _has_keys(node, constraints)]
    raw = dict.fromkeys((node.name for node in scored), 0.0)
    for one in constraints:
        for name, points in _raw_scores(one, pod, snapshot, scored, constraints).items():
            raw[name] += points
    rounded = {name: math.floor(value + 0.5) for name, value in raw.items()}
    low, high = min(rounded.values(), default=0), max(rounded.values(), default=0)
    scores = {name: MAX_SCORE * (high + low - value) // high if high else MAX_SCORE for name, value in rounded.items()}
    return {node.name: scores.get(node.name, 0) for node in nodes}


def _raw_scores(
    constraint: _Constraint,
    pod: PodInfo,
    snapshot: Snapshot,
    scored: Sequence[NodeInfo],
    constraints: Sequence[_Constraint],
) -> dict[str, float]:
    """Return the weighted number of matching pods in the domain of each node; rare domains weigh less."""
    if constraint.key == _HOSTNAME:
        numbers = {node.name: constraint.count(pod, node, snapshot) for node in scored}
        size = len(scored)
    else:
        every = [node for node in snapshot.nodes if _has_keys(node, constraints)]
        domains = _counts(constraint, pod, every, snapshot)
        numbers = {node.name: domains.get(node.labels[constraint.key], 0) for node in scored}
        size = len({node.labels[constraint.key] for node in scored})
    weight = math.log(size + 2)
    return {name: number * weight + constraint.max_skew - 1 for name, number in numbers.items()}


def _constraints(pod: PodInfo, action: str) -> list[_Constraint]:
    every = pod.spec.get("topologySpreadConstraints") or ()
    return [_Constraint.of(one, pod.labels) for one in every if one["whenUnsatisfiable"] == action]


def _has_keys(node: NodeInfo, constraints: Sequence[_Constraint]) -> bool:
    return all(one.key in node.labels for one in constraints)


def _counts(constraint: _Constraint, pod: PodInfo, nodes: Sequence[NodeInfo], snapshot: Snapshot) -> dict[str, int]:
    """Return the number of matching pods in each domain."""
    found: dict[str, int] = {}
    for node in nodes:
        if constraint.includes(pod, node):
            value = node.labels[constraint.key]
            found[value] = found.get(value, 0) + constraint.count(pod, node, snapshot)
    return found
