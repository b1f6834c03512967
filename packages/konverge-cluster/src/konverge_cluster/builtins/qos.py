"""The quality of service that a pod gets, by what its containers request and where they are limited."""

from __future__ import annotations

from typing import Any, Final

from konverge.objects.quantities import Quantity
from konverge_cluster.builtins.defaults.resources import sum_amounts

__all__ = ["qos_class"]

_COMPUTE: Final = ("cpu", "memory")


def qos_class(spec: dict[str, Any]) -> str:
    """BestEffort when nothing is asked for, Guaranteed when every container gets exactly its limits, else Burstable."""
    own = spec.get("resources")
    if own is not None:
        parts = [own]
    else:
        containers = (*(spec["containers"] or ()), *spec.get("initContainers", ()))
        parts = [container["resources"] for container in containers]
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    every_limit = True
    for part in parts:
        requests = sum_amounts(requests, _compute(part, "requests"))
        limits = sum_amounts(limits, _compute(part, "limits"))
        every_limit = every_limit and len(_compute(part, "limits")) == len(_COMPUTE)
    if not requests and not limits:
        return "BestEffort"
    same = requests.keys() == limits.keys() and all(
        Quantity(requests[name]) == Quantity(limits[name]) for name in requests
    )
    return "Guaranteed" if every_limit and same else "Burstable"


def _compute(resources: dict[str, Any], kind: str) -> dict[str, str]:
    amounts = resources.get(kind, {})
    return {name: amounts[name] for name in _COMPUTE if name in amounts and Quantity(amounts[name]) > 0}
