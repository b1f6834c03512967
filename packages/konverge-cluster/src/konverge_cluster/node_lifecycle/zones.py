"""How fast nodes may be tainted NoExecute: slowly, and not at all when most nodes of a zone fail at once.

Rules that hold here:

1. A zone is *normal*, *partially disrupted* (more than two of its nodes and 55 % of them are not ready) or *fully
   disrupted* (none is ready).
2. One node in ten seconds is tainted in a normal or fully disrupted zone, one in a hundred seconds in a partially
   disrupted zone of more than 50 nodes, none in a smaller one.
3. If all zones are fully disrupted no node is tainted: then it is probably this controller that has no connection.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from konverge.k8s.core.v1 import Node
from konverge_cluster.node_lifecycle.health import ready_status

__all__ = ["TaintLimiter", "eviction_rates", "zone_of"]

_RATE: Final = 0.1
_SECONDARY_RATE: Final = 0.01
_LARGE_ZONE: Final = 50
_UNHEALTHY_SHARE: Final = 0.55
_REGION: Final = "topology.kubernetes.io/region"
_ZONE: Final = "topology.kubernetes.io/zone"


def zone_of(node: Node) -> tuple[str, str]:
    """Return region and zone of a node, each "" if it has no such label."""
    return (node.metadata.labels.get(_REGION, ""), node.metadata.labels.get(_ZONE, ""))


def eviction_rates(nodes: Iterable[Node]) -> dict[tuple[str, str], float]:
    """Return how many nodes a second may be tainted in each zone; empty if all zones are fully disrupted."""
    ready: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for node in nodes:
        ready[zone_of(node)].append(ready_status(node) == "True")
    if not any(any(zone) for zone in ready.values()):
        return {}
    return {zone: _rate(len(found), found.count(False)) for zone, found in ready.items()}


def _rate(size: int, not_ready: int) -> float:
    partial = 2 < not_ready < size and not_ready / size >= _UNHEALTHY_SHARE
    if not partial:
        return _RATE
    return _SECONDARY_RATE if size > _LARGE_ZONE else 0.0


class TaintLimiter:
    """Limits how often nodes of a zone are tainted, at a rate that may change."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], datetime] = {}

    def acquire(self, zone: tuple[str, str], rates: Mapping[tuple[str, str], float], now: datetime) -> bool:
        """Report whether a node of the zone may be tainted now; if so, the next one has to wait."""
        rate = rates.get(zone, 0.0)
        last = self._last.get(zone)
        if not rate or (last is not None and now < last + timedelta(seconds=1 / rate)):
            return False
        self._last[zone] = now
        return True
