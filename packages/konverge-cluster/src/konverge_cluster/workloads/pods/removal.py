"""Which pods go first when there are too many.

The order, each rule only where those before it do not decide:

1. without a node before those with one;
2. pending, then unknown, then running;
3. not ready before ready;
4. the lower `controller.kubernetes.io/pod-deletion-cost` first (replica sets only);
5. on a node with more pods of the same family first (replica sets only);
6. ready for a shorter time first;
7. more restarts first, of containers and then of sidecars;
8. younger first;
9. by uid, which is no particular order.

For replica sets the times of rules 6 and 8 compare by the power of two of the age, so that pods of about the same age
are equal. A Job compares the times themselves.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, TypeAlias

from konverge.k8s.core.v1 import Pod
from konverge_cluster.workloads.pods.facts import is_active, is_ready, ready_since, restarts

__all__ = ["COST", "deletion_cost", "to_remove", "to_remove_of_job"]

COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_WHOLE: Final = re.compile(r"0|[1-9][0-9]*|-[1-9][0-9]*", re.ASCII)
_NANOSECOND: Final = 1e9

_Age: TypeAlias = Callable[[datetime | None], float]
_Rank: TypeAlias = tuple[float | str, ...]


def to_remove(pods: Sequence[Pod], count: int, *, family: Iterable[Pod], now: datetime) -> list[Pod]:
    """Choose `count` pods of a replica set; `family` is the pods of all replica sets with the same owner."""
    if count >= len(pods):
        return list(pods)
    crowd = Counter(pod.spec.node_name or "" for pod in family if is_active(pod))

    def rank(pod: Pod) -> _Rank:
        apart = (deletion_cost(pod), -crowd[pod.spec.node_name or ""])
        return _stage(pod) + apart + _history(pod, lambda moment: _rounded_age(moment, now))

    return sorted(pods, key=rank)[:count]


def to_remove_of_job(pods: Iterable[Pod], count: int) -> list[Pod]:
    """Choose `count` pods of a Job."""
    return sorted(pods, key=lambda pod: _stage(pod) + _history(pod, _exact_age))[:count]


def deletion_cost(pod: Pod) -> int:
    """Say what it costs to delete a pod, as its annotation has it; 0 when it has none that can be read."""
    text = pod.metadata.annotations.get(COST, "")
    cost = int(text) if _WHOLE.fullmatch(text) and len(text) <= 11 else 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _stage(pod: Pod) -> _Rank:
    return bool(pod.spec.node_name), _PHASES.get(pod.status.phase or "", 0), is_ready(pod)


def _history(pod: Pod, age: _Age) -> _Rank:
    ready = age(ready_since(pod)) if is_ready(pod) else 0
    containers, sidecars = restarts(pod)
    return ready, -containers, -sidecars, age(pod.metadata.creation_timestamp), pod.uid


def _rounded_age(moment: datetime | None, now: datetime) -> float:
    if moment is None:
        return -math.inf
    passed = (now - moment).total_seconds() * _NANOSECOND
    return int(math.log2(passed)) if passed > 0 else -1


def _exact_age(moment: datetime | None) -> float:
    return -moment.timestamp() if moment is not None else -math.inf
