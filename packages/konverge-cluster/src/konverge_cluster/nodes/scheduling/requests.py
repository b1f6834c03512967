"""Resources that pods request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from konverge.objects import Quantity

__all__ = ["Amounts", "amounts", "requests_of"]

Amounts: TypeAlias = dict[str, int]
"""Resources by name, in thousandths."""


def requests_of(spec: Mapping[str, Any]) -> Amounts:
    """Return the effective requests of a pod: the sum of its containers or the largest init container, and overhead.

    A sidecar is added to every container that starts after it.
    """
    containers = _sum(_requests(one) for one in spec.get("containers", ()))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for one in spec.get("initContainers") or ():
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
