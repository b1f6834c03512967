"""What is wrong with a label selector in a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge.controlplane.api.problems import FieldProblem, forbidden, invalid, required
from konverge.objects.names import label_key_errors, label_value_errors

__all__ = ["selector_problems"]

Problems = Iterator[FieldProblem]


def selector_problems(selector: dict[str, Any] | None, path: str) -> Problems:
    """Check a selector in its structured form."""
    selector = selector or {}
    for key, value in sorted((selector.get("matchLabels") or {}).items()):
        yield from (invalid(f"{path}.matchLabels", key, error) for error in label_key_errors(key))
        yield from (invalid(f"{path}.matchLabels", value, error) for error in label_value_errors(value))
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        yield from _expression(expression, f"{path}.matchExpressions[{index}]")


def _expression(expression: dict[str, Any], path: str) -> Problems:
    operator, values, key = expression.get("operator", ""), expression.get("values") or [], expression.get("key", "")
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from (invalid(f"{path}.key", key, error) for error in label_key_errors(key))
    for index, value in enumerate(values):
        yield from (invalid(f"{path}.values[{index}]", value, error) for error in label_value_errors(value))
