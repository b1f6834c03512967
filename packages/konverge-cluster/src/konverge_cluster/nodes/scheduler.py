"""Which node a pod fits on: plain functions of a pod's spec and of the nodes.

Filters: whether the node is schedulable, its taints, node selector and required node affinity, and the resources
that the pod requests. Of the nodes that fit, the one with the fewest pods is selected. Ignored: affinity between
pods, topology spread, preferences, volumes, host ports, priority (no pod is preempted).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from konverge.objects import LabelSelector, Quantity

__all__ = ["Amounts", "NodeInfo", "Unschedulable", "amounts", "requests_of", "select_node", "tolerates_taint"]

Amounts: TypeAlias = dict[str, int]
"""Resources by name, in thousandths."""

_REPELLING_EFFECTS: Final = ("NoSchedule", "NoExecute")
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True)
class NodeInfo:
    """The properties of a node that the scheduler uses."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    unschedulable: bool = False
    allocatable: Amounts = field(default_factory=dict)


@dataclass(frozen=True)
class Unschedulable:
    """The result when no node fits, with the reasons."""

    message: str


def select_node(spec: Mapping[str, Any], nodes: Iterable[NodeInfo], used: Mapping[str, Amounts]) -> str | Unschedulable:
    """Select a node for a pod; `used` is the sum of requests of the pods on each node."""
    nodes = list(nodes)
    if not nodes:
        return Unschedulable("no nodes available to schedule pods")
    requests = requests_of(spec)
    reasons_count: Counter[str] = Counter()
    feasible = []
    for node in nodes:
        reasons = _filter_reasons(spec, requests, node, used.get(node.name, {}))
        reasons_count.update(reasons)
        if not reasons:
            feasible.append(node)
    if feasible:
        return min(feasible, key=lambda node: (used.get(node.name, {}).get("pods", 0), node.name)).name
    counts = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons_count.items()))
    return Unschedulable(f"0/{len(nodes)} nodes are available: {counts}.")


def _filter_reasons(spec: Mapping[str, Any], requests: Amounts, node: NodeInfo, used: Amounts) -> list[str]:
    """Return why a node does not fit: the first reason other than resources, else the insufficient resources."""
    tolerations = spec.get("tolerations", ())
    if node.unschedulable and not tolerates_taint(tolerations, {"key": _UNSCHEDULABLE, "effect": "NoSchedule"}):
        return ["node(s) were unschedulable"]
    taints = [
        one for one in node.taints if one["effect"] in _REPELLING_EFFECTS and not tolerates_taint(tolerations, one)
    ]
    if taints:
        return ["node(s) had untolerated taint(s)"]
    if not _matches_node(spec, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    insufficient = [
        name for name, amount in requests.items() if amount > node.allocatable.get(name, 0) - used.get(name, 0)
    ]
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in insufficient]


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


def _matches_node(spec: Mapping[str, Any], node: NodeInfo) -> bool:
    if not LabelSelector.of(spec.get("nodeSelector") or {}).matches(node.labels):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(_matches_term(term, node) for term in required["nodeSelectorTerms"])


def _matches_term(term: Mapping[str, Any], node: NodeInfo) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not (expressions or fields):
        return False
    own_name = {"metadata.name": node.name}
    return all(_matches_expression(one, node.labels) for one in expressions) and all(
        _matches_expression(one, own_name) for one in fields
    )


def _matches_expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    sign = {"Gt": ">", "Lt": "<"}.get(expression["operator"])
    if sign is not None:
        return LabelSelector.parse(f"{expression['key']}{sign}{expression['values'][0]}").matches(labels)
    return LabelSelector.from_spec({"matchExpressions": [expression]}).matches(labels)


def requests_of(spec: Mapping[str, Any]) -> Amounts:
    """Return the effective requests of a pod: the sum of its containers or the largest init container, and overhead.

    A sidecar is added to every container that starts after it.
    """
    containers = _sum(_requests(one) for one in spec.get("containers", ()))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for one in spec.get("initContainers", ()):
        if one.get("restartPolicy") == "Always":
            sidecars = _sum([sidecars, _requests(one)])
            largest = _larger(largest, sidecars)
        else:
            largest = _larger(largest, _sum([sidecars, _requests(one)]))
    found = _larger(_sum([containers, sidecars]), largest)
    found = _sum([found, amounts(spec.get("overhead") or {})])
    return {**{name: amount for name, amount in found.items() if amount}, "pods": 1000}


def amounts(quantities: Mapping[str, Any]) -> Amounts:
    """Convert quantities to thousandths."""
    return {name: Quantity(str(value)).milli() for name, value in quantities.items()}


def _requests(container: Mapping[str, Any]) -> Amounts:
    return amounts((container.get("resources") or {}).get("requests") or {})


def _sum(every: Iterable[Amounts]) -> Amounts:
    found: Counter[str] = Counter()
    for one in every:
        found.update(one)
    return dict(found)


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in one.keys() | other.keys()}
