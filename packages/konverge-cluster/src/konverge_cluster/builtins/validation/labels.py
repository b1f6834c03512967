"""Validation of labels, annotations and selectors."""

from __future__ import annotations

from typing import Any, Final

from konverge.objects.names import label_key_errors, label_value_errors
from konverge_cluster.api.field_errors import forbidden, invalid, required, too_long
from konverge_cluster.builtins.validation.values import FieldErrors, validate_qualified_name

__all__ = [
    "selector_is_empty",
    "selector_matches",
    "sorted_labels",
    "validate_annotation_values",
    "validate_label_selector",
    "validate_labels",
]

Selector = dict[str, Any]

_ANNOTATIONS_LIMIT: Final = 256 * 1024
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


def validate_labels(values: dict[str, str] | None, path: str) -> FieldErrors:
    for key, value in (values or {}).items():
        yield from validate_qualified_name(key, path)
        for text in label_value_errors(value):
            yield invalid(path, value, text)


def validate_annotation_values(values: dict[str, str] | None, path: str) -> FieldErrors:
    size = 0
    for key, value in (values or {}).items():
        for text in label_key_errors(key.lower()):
            yield invalid(path, key, text)
        size += len(key.encode()) + len(value.encode())
    if size > _ANNOTATIONS_LIMIT:
        yield too_long(path, _ANNOTATIONS_LIMIT)


def validate_label_selector(selector: Selector | None, path: str) -> FieldErrors:
    if not selector:
        return
    yield from validate_labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions", ())):
        yield from _validate_requirement(requirement, f"{path}.matchExpressions[{index}]")


def _validate_requirement(requirement: Selector, path: str) -> FieldErrors:
    operator, values = requirement["operator"], requirement.get("values", ())
    if operator in ("In", "NotIn") and not values:
        yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator not in _OPERATORS:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from validate_qualified_name(requirement["key"], f"{path}.key")
    for index, value in enumerate(values):
        for text in label_value_errors(value):
            yield invalid(f"{path}.values[{index}]", value, text)


def selector_is_empty(selector: Selector) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def selector_matches(selector: Selector, labels: dict[str, str]) -> bool:
    """Report whether a valid selector matches labels."""
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    return all(_is_met(each, labels) for each in selector.get("matchExpressions", ()))


def _is_met(requirement: Selector, labels: dict[str, str]) -> bool:
    key, values = requirement["key"], requirement.get("values", ())
    match requirement["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def sorted_labels(values: dict[str, str] | None) -> dict[str, str] | None:
    """Return labels in the order in which the server prints them."""
    return None if values is None else dict(sorted(values.items()))
