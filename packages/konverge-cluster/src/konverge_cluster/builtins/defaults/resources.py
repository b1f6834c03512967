"""Resource lists: rounding to thousandths, default requests, sums and maxima."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal
from functools import lru_cache
from typing import Any, Final

from konverge.objects.quantities import Quantity

__all__ = ["default_requests", "is_overcommit_allowed", "is_pod_level", "max_amounts", "round_resources", "sum_amounts"]

_MILLI: Final = Decimal("0.001")
_POD_LEVEL: Final = ("cpu", "memory")


def round_resources(*lists: dict[str, str] | None) -> None:
    """Round the amounts of resource lists up to thousandths, in place."""
    for each in lists:
        for name, amount in (each or {}).items():
            if amount[-1] in "nu" or "e-" in amount or "." in amount:
                each[name] = _rounded(amount)  # type: ignore[index]


@lru_cache(maxsize=1024)
def _rounded(amount: str) -> str:
    value = Quantity(amount).value
    rounded = value.quantize(_MILLI, rounding=ROUND_UP)
    return amount if rounded == value else Quantity.of(rounded).canonical()


def default_requests(container: dict[str, Any]) -> None:
    """Set missing requests of a container to its limits."""
    resources = container["resources"]
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **resources.get("requests", {})}


def is_pod_level(name: str) -> bool:
    """Report whether a resource can be requested at pod level."""
    return name in _POD_LEVEL or name.startswith("hugepages-")


def is_overcommit_allowed(name: str) -> bool:
    return not name.startswith("hugepages-") and ("/" not in name or "kubernetes.io/" in name)


def sum_amounts(left: dict[str, str], right: dict[str, str]) -> dict[str, str]:
    """Return the sum of two resource lists."""
    total = dict(left)
    for name, amount in right.items():
        total[name] = (Quantity(total[name]) + Quantity(amount)).canonical() if name in total else amount
    return total


def max_amounts(left: dict[str, str], right: dict[str, str]) -> dict[str, str]:
    """Return the larger amount of each resource."""
    largest = dict(left)
    for name, amount in right.items():
        if name not in largest or Quantity(amount) > Quantity(largest[name]):
            largest[name] = amount
    return largest
