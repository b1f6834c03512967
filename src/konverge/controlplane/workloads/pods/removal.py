"""Which pods go first when there are too many.

The order, each rule only where those before it do not decide:

1. without a node before those with one;
2. pending, then unknown, then running;
3. not ready before ready;
4. the lower `controller.kubernetes.io/pod-deletion-cost` first (replica sets only);
5. on a node with more pods of the same family first (replica sets only);
6. ready for a shorter time first;
7. more restarts first, of containers and then of sidecars;
8. younger first.

For replica sets the times of rules 6 and 8 compare by the power of two of the age, and uids decide among equals: pods
that were made about the same time go in no particular order. A Job compares the times themselves.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from konverge.controlplane.workloads.pods.facts import is_active, is_ready, ready_since, restarts
from konverge.k8s.core.v1 import Pod

__all__ = ["COST", "deletion_cost", "to_remove", "to_remove_of_job"]

COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_WHOLE: Final = re.compile(r"0|[1-9][0-9]*|-[1-9][0-9]*", re.ASCII)
_NANOSECOND: Final = 1e9


def to_remove(pods: Sequence[Pod], count: int, *, family: Iterable[Pod], now: datetime) -> list[Pod]:
    """Choose `count` pods of a replica set; `family` is the pods of all replica sets with the same owner."""
    if count >= len(pods):
        return list(pods)
    crowd = Counter(pod.spec.node_name or "" for pod in family if is_active(pod))
    order = functools.partial(_compare, crowd=crowd, now=now)
    return sorted(pods, key=functools.cmp_to_key(order))[:count]


def to_remove_of_job(pods: Iterable[Pod], count: int) -> list[Pod]:
    """Choose `count` pods of a Job."""
    return sorted(pods, key=functools.cmp_to_key(_compare_plainly))[:count]


def deletion_cost(pod: Pod) -> int:
    """Say what it costs to delete a pod, as its annotation has it; 0 when it has none that can be read."""
    text = pod.metadata.annotations.get(COST, "")
    cost = int(text) if _WHOLE.fullmatch(text) and len(text) <= 11 else 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _compare(one: Pod, other: Pod, *, crowd: Counter[str], now: datetime) -> int:
    return (
        _compare_stage(one, other)
        or _sign(deletion_cost(one), deletion_cost(other))
        or _sign(crowd[other.spec.node_name or ""], crowd[one.spec.node_name or ""])
        or _compare_readiness(one, other, now)
        or _compare_restarts(one, other)
        or _compare_times(one, other, (one.metadata.creation_timestamp, other.metadata.creation_timestamp), now)
    )


def _compare_plainly(one: Pod, other: Pod) -> int:
    return (
        _compare_stage(one, other)
        or _compare_readiness(one, other, None)
        or _compare_restarts(one, other)
        or _compare_times(one, other, (one.metadata.creation_timestamp, other.metadata.creation_timestamp), None)
    )


def _compare_stage(one: Pod, other: Pod) -> int:
    return (
        _sign(bool(one.spec.node_name), bool(other.spec.node_name))
        or _sign(_PHASES.get(one.status.phase or "", 0), _PHASES.get(other.status.phase or "", 0))
        or _sign(is_ready(one), is_ready(other))
    )


def _compare_readiness(one: Pod, other: Pod, now: datetime | None) -> int:
    if not (is_ready(one) and is_ready(other)):
        return 0
    return _compare_times(one, other, (ready_since(one), ready_since(other)), now)


def _compare_restarts(one: Pod, other: Pod) -> int:
    mine, theirs = restarts(one), restarts(other)
    return _sign(theirs[0], mine[0]) or _sign(theirs[1], mine[1])


def _compare_times(one: Pod, other: Pod, times: tuple[datetime | None, datetime | None], now: datetime | None) -> int:
    """Order by time, the later first and none before all; with `now` by the power of two of the age."""
    mine, theirs = times
    if mine == theirs:
        return 0
    if mine is None or theirs is None:
        return -1 if mine is None else 1
    if now is None:
        return -1 if mine > theirs else 1
    return _sign(_age(mine, now), _age(theirs, now)) or _sign(one.uid, other.uid)


def _age(moment: datetime, now: datetime) -> int:
    passed = (now - moment).total_seconds() * _NANOSECOND
    return int(math.log2(passed)) if passed > 0 else -1


def _sign(one: int | str, other: int | str) -> int:
    return (one > other) - (one < other)  # type: ignore[operator]
