"""Cost limits of rules by the server's estimate: for one rule, and for all rules of a schema."""

from __future__ import annotations

from typing import Final

from konverge_cluster.api.field_errors import FieldError, forbidden
from konverge_cluster.cel.estimates import MAX_UINT64
from konverge_cluster.crds.rule_types import LARGEST_REQUEST, Declaration

__all__ = ["Costs"]

_RULE_LIMIT: Final = 10_000_000
_TOTAL_LIMIT: Final = 100_000_000
_HINT: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are"
    " declared)"
)


class Costs:
    """The sum of the estimated costs of a schema's rules."""

    def __init__(self) -> None:
        self._total = 0
        self._expensive: list[tuple[int, str]] = []

    def rule_errors(self, cost: int, declaration: Declaration, count: int | None, path: str) -> list[FieldError]:
        """Return an error if a rule is too expensive; `count` is how often it can run per object, None if unbounded."""
        runs = count if count is not None else LARGEST_REQUEST // (declaration.min_bytes + 1)
        return self._observe(min(cost * runs, MAX_UINT64), path, "estimated rule cost")

    def message_errors(self, cost: int, path: str) -> list[FieldError]:
        """Return an error if a message expression is too expensive."""
        return self._observe(cost, path, "estimated messageExpression cost")

    def _observe(self, cost: int, path: str, what: str) -> list[FieldError]:
        self._total = min(self._total + cost, MAX_UINT64)
        if cost >= _TOTAL_LIMIT // 100:
            self._expensive = sorted([*self._expensive, (cost, path)], key=lambda each: -each[0])[:4]
        return [forbidden(path, _text(what, cost, _RULE_LIMIT))] if cost > _RULE_LIMIT else []

    def total_errors(self, path: str) -> list[FieldError]:
        """Return an error if all rules together are too expensive."""
        if self._total <= _TOTAL_LIMIT:
            return []
        text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        found = [forbidden(where, text) for _, where in self._expensive]
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [*found, forbidden(path, _text(what, self._total, _TOTAL_LIMIT))]


def _text(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    excess = "more than 100x" if factor > 100 else f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {excess} {_HINT}"
