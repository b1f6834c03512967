"""When a node counts as dead: neither its Ready condition nor its Lease was renewed for the grace period."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from konverge.k8s.core.v1 import Node, NodeCondition
from konverge.objects import replace

__all__ = ["STARTUP_GRACE_PERIOD", "Heartbeat", "ready_status", "unknown_conditions"]

STARTUP_GRACE_PERIOD: Final = 60.0
"""After how many seconds a node that never posted a status is Unknown."""

_TYPES: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(frozen=True)
class Heartbeat:
    """The last sign of life of a node: what it posted, and when that was seen."""

    uid: str
    heartbeat_time: datetime | None
    """The time in its Ready condition."""

    seen: datetime

    def observe(self, node: Node, renew_time: datetime | None, now: datetime) -> Heartbeat:
        """Return the last sign of life, given the node and the time at which its Lease was renewed."""
        heartbeat_time = _posted(node)
        if node.uid != self.uid:
            return Heartbeat.first(node, now)
        seen = now if heartbeat_time is not None and heartbeat_time != self.heartbeat_time else self.seen
        return Heartbeat(self.uid, heartbeat_time, seen if renew_time is None else max(seen, min(renew_time, now)))

    @classmethod
    def first(cls, node: Node, now: datetime) -> Heartbeat:
        """Return the heartbeat of a node that is seen for the first time."""
        created = node.metadata.creation_timestamp
        return cls(node.uid, _posted(node), now if _ready(node) or created is None else created)

    def seconds_left(self, node: Node, grace_period: float, now: datetime) -> float:
        """Return in how many seconds the node is dead; 0 or less if it is."""
        period = grace_period if _ready(node) else STARTUP_GRACE_PERIOD
        return (self.seen + timedelta(seconds=period) - now).total_seconds()


def ready_status(node: Node) -> str:
    """Return the status of the Ready condition, "" if there is none."""
    condition = _ready(node)
    return condition.status if condition is not None else ""


def unknown_conditions(node: Node, now: datetime) -> list[NodeCondition]:
    """Return the conditions of a node that sends no heartbeats."""
    present = {one.type: one for one in node.status.conditions}
    for type_ in _TYPES:
        old = present.get(type_)
        if old is None:
            present[type_] = _never_updated(type_, node, now)
        elif old.status != "Unknown":
            message = "Kubelet stopped posting node status."
            present[type_] = replace(
                old, status="Unknown", reason="NodeStatusUnknown", message=message, last_transition_time=now
            )
    return list(present.values())


def _never_updated(type_: str, node: Node, now: datetime) -> NodeCondition:
    return NodeCondition(
        type=type_,
        status="Unknown",
        reason="NodeStatusNeverUpdated",
        message="Kubelet never posted node status.",
        last_heartbeat_time=node.metadata.creation_timestamp,
        last_transition_time=now,
    )


def _ready(node: Node) -> NodeCondition | None:
    return next((one for one in node.status.conditions if one.type == "Ready"), None)


def _posted(node: Node) -> datetime | None:
    condition = _ready(node)
    return condition.last_heartbeat_time if condition is not None else None
