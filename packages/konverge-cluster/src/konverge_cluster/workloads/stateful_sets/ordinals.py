"""The ordinals of a StatefulSet: which pods are its replicas, and which are condemned.

Ordinals start at `spec.ordinals.start` and end after `spec.replicas`. The name of a pod ends with its ordinal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import Pod

__all__ = ["condemned_pods", "is_in_range", "is_member", "ordinal_of", "ordinals", "pod_name", "replica_count"]

_NAME: Final = re.compile(r"(.*)-([0-9]+)", re.ASCII)
_MAX_ORDINAL: Final = 2**31 - 1
_NONE: Final = -1


def pod_name(stateful_set: StatefulSet, ordinal: int) -> str:
    """Return the name of the pod with an ordinal."""
    return f"{stateful_set.name}-{ordinal}"


def ordinal_of(pod: Pod) -> int:
    """Return the ordinal in the name of a pod; -1 if there is none."""
    match = _NAME.fullmatch(pod.name)
    ordinal = int(match[2]) if match is not None else _NONE
    return ordinal if ordinal <= _MAX_ORDINAL else _NONE


def is_member(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Report whether the name of a pod is that of a StatefulSet with a number at its end."""
    match = _NAME.fullmatch(pod.name)
    return match is not None and match[1] == stateful_set.name


def replica_count(stateful_set: StatefulSet) -> int:
    """Return the desired number of pods."""
    return 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas


def ordinals(stateful_set: StatefulSet) -> range:
    """Return the ordinals of the desired pods."""
    start = (stateful_set.spec.ordinals.start or 0) if stateful_set.spec.ordinals is not None else 0
    return range(start, start + replica_count(stateful_set))


def is_in_range(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Report whether a pod is one of the desired ones."""
    return ordinal_of(pod) in ordinals(stateful_set)


def condemned_pods(stateful_set: StatefulSet, pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods to remove, those with ordinals outside of the range: the highest ordinal first."""
    outside = [pod for pod in pods if ordinal_of(pod) != _NONE and not is_in_range(stateful_set, pod)]
    return sorted(outside, key=ordinal_of, reverse=True)
