"""The quality-of-service class of a pod, computed from the requests and limits of its containers."""

from __future__ import annotations

from typing import Any, Final

from konverge.objects.quantities import Quantity
from konverge_cluster.builtins.defaults.resources import sum_amounts

__all__ = ["qos_class"]

_COMPUTE: Final = ("cpu", "memory")


def qos_class(spec: dict[str, Any]) -> str:
    """Return BestEffort without requests and limits, Guaranteed if requests equal limits, Burstable otherwise."""
    own = spec.get("resources")
    if own is not None:
        parts = [own]
    else:
        containers = (*(spec["containers"] or ()), *spec.get("initContainers", ()))
        parts = [container["resources"] for container in containers]
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    has_all_limits = True
    for part in parts:
        requests = sum_amounts(requests, _compute(part, "requests"))
        limits = sum_amounts(limits, _compute(part, "limits"))
        has_all_limits = has_all_limits and len(_compute(part, "limits")) == len(_COMPUTE)
    if not requests and not limits:
        return "BestEffort"
    same = requests.keys() == limits.keys() and all(
        Quantity(requests[name]) == Quantity(limits[name]) for name in requests
    )
    return "Guaranteed" if has_all_limits and same else "Burstable"


def _compute(resources: dict[str, Any], kind: str) -> dict[str, str]:
    amounts = resources.get(kind, {})
    return {name: amounts[name] for name in _COMPUTE if name in amounts and Quantity(amounts[name]) > 0}
