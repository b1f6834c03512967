"""What queries of dashboards and alerts ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import promql_parser

__all__ = ["labels_of_groups", "metrics_in"]


def _parts_of(node: Any) -> Iterator[Any]:
    """Yield the nodes of a query."""
    yield node
    inner = [getattr(node, name, None) for name in ("lhs", "rhs", "expr", "param", "vector_selector", "args")]
    for part in inner:
        for one in part if isinstance(part, list) else [part]:
            if one is not None and not isinstance(one, str | int | float):
                yield from _parts_of(one)


def metrics_in(query: str) -> dict[str, set[str]]:
    """Return the metrics of a query, each with the labels that it matches."""
    found: dict[str, set[str]] = {}
    for part in _parts_of(promql_parser.parse(query)):
        if isinstance(part, promql_parser.VectorSelector):
            assert part.name is not None
            found.setdefault(part.name, set()).update(one.name for one in part.matchers.matchers)
    return found


def labels_of_groups(query: str) -> set[str]:
    """Return the labels that a query groups by."""
    found: set[str] = set()
    for part in _parts_of(promql_parser.parse(query)):
        if isinstance(part, promql_parser.AggregateExpr) and part.modifier is not None:
            found.update(part.modifier.labels)
    return found
