"""The taints that follow from the state of a node. Taints of others are never touched."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final

from konverge.k8s.core.v1 import Node, Taint

__all__ = ["EXECUTE_TAINTS", "NOT_READY", "UNREACHABLE", "has_execute_taint", "schedule_taints", "set_taints"]

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_BY_CONDITION: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_SCHEDULE_TAINTS: Final = frozenset({*_BY_CONDITION.values(), _UNSCHEDULABLE})
EXECUTE_TAINTS: Final = {"False": NOT_READY, "Unknown": UNREACHABLE}
"""The NoExecute taint of a node, by the status of its Ready condition."""


def schedule_taints(node: Node, now: datetime) -> list[Taint]:
    """Return the taints of a node, with those of effect NoSchedule that its conditions and its cordon require."""
    statuses = [(one.type, one.status) for one in node.status.conditions]
    keys = [_BY_CONDITION[one] for one in statuses if one in _BY_CONDITION]
    if node.spec.unschedulable:
        keys.append(_UNSCHEDULABLE)
    return set_taints(node.spec.taints, keys, effect="NoSchedule", owned=_SCHEDULE_TAINTS, now=now)


def has_execute_taint(taints: Iterable[Taint]) -> bool:
    """Report whether a node has a NoExecute taint of this controller."""
    return any(one.effect == "NoExecute" and one.key in EXECUTE_TAINTS.values() for one in taints)


def set_taints(
    present: Iterable[Taint], keys: Collection[str], *, effect: str, owned: Collection[str], now: datetime
) -> list[Taint]:
    """Return the taints with exactly `keys` of those that are `owned`, for one effect; new ones come last."""
    kept = [one for one in present if one.effect != effect or one.key not in owned or one.key in keys]
    found = {one.key for one in kept if one.effect == effect}
    return [*kept, *(Taint(key=key, effect=effect, time_added=now) for key in keys if key not in found)]
