"""Which node a pod fits on: plain functions of a pod's spec and of what is known about nodes.

Looked at: whether the node is schedulable, its taints, node selector and required node affinity, and what the pod
requests. Of the nodes that fit, the one with the fewest pods is taken. Not looked at: affinity between pods, topology
spread, preferences, volumes, host ports, priority (nobody is preempted).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from konverge.objects import LabelSelector, Quantity

__all__ = ["Amounts", "NodeInfo", "Unschedulable", "amounts", "select_node", "tolerates_taint", "requests_of"]

Amounts: TypeAlias = dict[str, int]
"""Resources by name, in thousandths."""

_KEEPING_OUT: Final = ("NoSchedule", "NoExecute")
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True)
class NodeInfo:
    """A node as the scheduler sees it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    unschedulable: bool = False
    allocatable: Amounts = field(default_factory=dict)


@dataclass(frozen=True)
class Unschedulable:
    """No node fits, and why."""

    message: str


def select_node(spec: Mapping[str, Any], seats: Iterable[NodeInfo], used: Mapping[str, Amounts]) -> str | Unschedulable:
    """Choose a node for a pod; `used` is what the pods on each node request."""
    seats = list(seats)
    if not seats:
        return Unschedulable("no nodes available to schedule pods")
    wanted = requests_of(spec)
    against: Counter[str] = Counter()
    fitting = []
    for seat in seats:
        reasons = _against(spec, wanted, seat, used.get(seat.name, {}))
        against.update(reasons)
        if not reasons:
            fitting.append(seat)
    if fitting:
        return min(fitting, key=lambda seat: (used.get(seat.name, {}).get("pods", 0), seat.name)).name
    counts = ", ".join(sorted(f"{count} {reason}" for reason, count in against.items()))
    return Unschedulable(f"0/{len(seats)} nodes are available: {counts}.")


def _against(spec: Mapping[str, Any], wanted: Amounts, seat: NodeInfo, used: Amounts) -> list[str]:
    """Give what speaks against a node: the first thing that no resource could change, else what is short."""
    tolerations = spec.get("tolerations", ())
    if seat.unschedulable and not tolerates_taint({"key": _UNSCHEDULABLE, "effect": "NoSchedule"}, tolerations):
        return ["node(s) were unschedulable"]
    taints = [one for one in seat.taints if one["effect"] in _KEEPING_OUT and not tolerates_taint(one, tolerations)]
    if taints:
        return ["node(s) had untolerated taint(s)"]
    if not _is_selected(spec, seat):
        return ["node(s) didn't match Pod's node affinity/selector"]
    short = [name for name, amount in wanted.items() if amount > seat.allocatable.get(name, 0) - used.get(name, 0)]
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in short]


def tolerates_taint(taint: Mapping[str, Any], tolerations: Iterable[Mapping[str, Any]]) -> bool:
    """Tell whether one of the tolerations is for a taint."""
    return any(_tolerates(one, taint) for one in tolerations)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect", "") not in ("", taint["effect"]):
        return False
    if toleration.get("key", "") not in ("", taint["key"]):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def _is_selected(spec: Mapping[str, Any], seat: NodeInfo) -> bool:
    if not LabelSelector.of(spec.get("nodeSelector") or {}).matches(seat.labels):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(_is_term_met(term, seat) for term in required["nodeSelectorTerms"])


def _is_term_met(term: Mapping[str, Any], seat: NodeInfo) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not (expressions or fields):
        return False
    own_name = {"metadata.name": seat.name}
    return all(_is_met(one, seat.labels) for one in expressions) and all(_is_met(one, own_name) for one in fields)


def _is_met(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    sign = {"Gt": ">", "Lt": "<"}.get(expression["operator"])
    if sign is not None:
        return LabelSelector.parse(f"{expression['key']}{sign}{expression['values'][0]}").matches(labels)
    return LabelSelector.from_spec({"matchExpressions": [expression]}).matches(labels)


def requests_of(spec: Mapping[str, Any]) -> Amounts:
    """Give what a pod takes from a node: what its containers request together, or an init container more, and itself.

    A sidecar counts beside all that start after it.
    """
    together = _sum(_requests(one) for one in spec.get("containers", ()))
    sidecars: Amounts = {}
    most: Amounts = {}
    for one in spec.get("initContainers", ()):
        if one.get("restartPolicy") == "Always":
            sidecars = _sum([sidecars, _requests(one)])
            most = _larger(most, sidecars)
        else:
            most = _larger(most, _sum([sidecars, _requests(one)]))
    found = _larger(_sum([together, sidecars]), most)
    found = _sum([found, amounts(spec.get("overhead") or {})])
    return {**{name: amount for name, amount in found.items() if amount}, "pods": 1000}


def amounts(quantities: Mapping[str, Any]) -> Amounts:
    """Read quantities, in thousandths."""
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
