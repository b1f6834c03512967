"""How long a pod tolerates the taints of its node."""

from __future__ import annotations

import math
from collections.abc import Iterable

from konverge.k8s.core.v1 import Taint, Toleration
from konverge.objects import to_wire
from konverge_cluster.nodes.scheduling.taints import tolerates_taint

__all__ = ["execute_taints", "toleration_seconds"]


def execute_taints(taints: Iterable[Taint]) -> list[Taint]:
    """Return the taints that evict pods."""
    return [one for one in taints if one.effect == "NoExecute"]


def toleration_seconds(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> float | None:
    """Return how many seconds a pod tolerates these taints: None if it does not, infinity for ever.

    Of several tolerations for a taint the first one counts, and of several taints the one that is tolerated least.
    """
    known = [(one.toleration_seconds, to_wire(one)) for one in tolerations]
    limits = [math.inf]
    for taint in taints:
        wire = to_wire(taint)
        matching = [seconds for seconds, toleration in known if tolerates_taint([toleration], wire)]
        if not matching:
            return None
        if matching[0] is not None:
            limits.append(max(0.0, float(matching[0])))
    return min(limits)
