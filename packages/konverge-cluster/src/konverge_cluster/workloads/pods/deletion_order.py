"""Which pods are deleted first when there are too many.

The order; each rule applies only where those before it do not decide:

1. without a node before those with one;
2. pending, then unknown, then running;
3. not ready before ready;
4. the lower `controller.kubernetes.io/pod-deletion-cost` first (replica sets only);
5. on a node with more related pods first (replica sets only);
6. ready for a shorter time first;
7. more restarts first, of containers and then of sidecars;
8. younger first;
9. by uid, which is arbitrary.

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

__all__ = ["COST", "deletion_cost", "job_pods_to_delete", "pods_to_delete"]

COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_INTEGER: Final = re.compile(r"0|[1-9][0-9]*|-[1-9][0-9]*", re.ASCII)
_NANOSECOND: Final = 1e9

_Age: TypeAlias = Callable[[datetime | None], float]
_Rank: TypeAlias = tuple[float | str, ...]


def pods_to_delete(pods: Sequence[Pod], count: int, *, related: Iterable[Pod], now: datetime) -> list[Pod]:
    """Return `count` pods of a replica set to delete; `related` are all pods of replica sets with the same owner."""
    if count >= len(pods):
        return list(pods)
    pods_per_node = Counter(pod.spec.node_name or "" for pod in related if is_active(pod))

    def rank(pod: Pod) -> _Rank:
        replica_set_rank = (deletion_cost(pod), -pods_per_node[pod.spec.node_name or ""])
        return _state_rank(pod) + replica_set_rank + _age_rank(pod, lambda time: _rounded_age(time, now))

    return sorted(pods, key=rank)[:count]


def job_pods_to_delete(pods: Iterable[Pod], count: int) -> list[Pod]:
    """Return `count` pods of a Job to delete."""
    return sorted(pods, key=lambda pod: _state_rank(pod) + _age_rank(pod, _exact_age))[:count]


def deletion_cost(pod: Pod) -> int:
    """Return the deletion cost in the annotation of a pod; 0 without a valid one."""
    text = pod.metadata.annotations.get(COST, "")
    cost = int(text) if _INTEGER.fullmatch(text) and len(text) <= 11 else 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _state_rank(pod: Pod) -> _Rank:
    return bool(pod.spec.node_name), _PHASES.get(pod.status.phase or "", 0), is_ready(pod)


def _age_rank(pod: Pod, age: _Age) -> _Rank:
    ready = age(ready_since(pod)) if is_ready(pod) else 0
    containers, sidecars = restarts(pod)
    return ready, -containers, -sidecars, age(pod.metadata.creation_timestamp), pod.uid


def _rounded_age(time: datetime | None, now: datetime) -> float:
    if time is None:
        return -math.inf
    age = (now - time).total_seconds() * _NANOSECOND
    return int(math.log2(age)) if age > 0 else -1


def _exact_age(time: datetime | None) -> float:
    return -time.timestamp() if time is not None else -math.inf
