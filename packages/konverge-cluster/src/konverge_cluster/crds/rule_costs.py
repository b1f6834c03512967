"""How much rules may cost, by the server's estimate: one rule, and all rules of a schema together."""

from __future__ import annotations

from typing import Final

from konverge_cluster.api.field_errors import FieldError, forbidden
from konverge_cluster.cel.ranges import MOST
from konverge_cluster.crds.rule_types import LARGEST_REQUEST, Declared

__all__ = ["Costs"]

_RULE_LIMIT: Final = 10_000_000
_TOTAL_LIMIT: Final = 100_000_000
_HINT: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are"
    " declared)"
)


class Costs:
    """The costs of a schema's rules, summed up as they are estimated."""

    def __init__(self) -> None:
        self._total = 0
        self._expensive: list[tuple[int, str]] = []

    def rule_problems(self, cost: int, declared: Declared, count: int | None, path: str) -> list[FieldError]:
        """Say whether a rule is too expensive; `count` is how often it can run on one object, None without a bound."""
        runs = count if count is not None else LARGEST_REQUEST // (declared.least_bytes + 1)
        return self._observe(min(cost * runs, MOST), path, "estimated rule cost")

    def message_problems(self, cost: int, path: str) -> list[FieldError]:
        """Say whether an expression for a message is too expensive."""
        return self._observe(cost, path, "estimated messageExpression cost")

    def _observe(self, cost: int, path: str, what: str) -> list[FieldError]:
        self._total = min(self._total + cost, MOST)
        if cost >= _TOTAL_LIMIT // 100:
            self._expensive = sorted([*self._expensive, (cost, path)], key=lambda each: -each[0])[:4]
        return [forbidden(path, _text(what, cost, _RULE_LIMIT))] if cost > _RULE_LIMIT else []

    def total_problems(self, path: str) -> list[FieldError]:
        """Say whether all rules together are too expensive."""
        if self._total <= _TOTAL_LIMIT:
            return []
        text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        found = [forbidden(where, text) for _, where in self._expensive]
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [*found, forbidden(path, _text(what, self._total, _TOTAL_LIMIT))]


def _text(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} {_HINT}"
