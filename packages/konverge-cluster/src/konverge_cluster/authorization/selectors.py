"""Selectors in access reviews: validated, and parsed only to report what cannot be parsed; RBAC ignores them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from konverge.objects.fields import FieldSelector
from konverge.objects.labels import LabelSelector
from konverge.objects.names import label_value_errors
from konverge_cluster.api.field_errors import FieldError, forbidden, invalid, required
from konverge_cluster.builtins.validation.values import validate_qualified_name

__all__ = ["selector_errors", "validate_selectors"]

_FIELDS: Final = "fieldSelector"
_LABELS: Final = "labelSelector"
_PATH: Final = "spec.resourceAttributes"

Selector = Mapping[str, Any]


def validate_selectors(attributes: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield the errors in the selectors of a review's resource attributes."""
    for name in (_FIELDS, _LABELS):
        if name in attributes:
            yield from _validate(attributes[name], f"{_PATH}.{name}", labels=name == _LABELS)


def _validate(selector: Selector, path: str, *, labels: bool) -> Iterator[FieldError]:
    raw, requirements = selector.get("rawSelector", ""), selector.get("requirements", ())
    if raw and requirements:
        yield invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")
    if not raw and not requirements:
        text = f"when {path} is specified, requirements or rawSelector is required"
        yield required(f"{path}.requirements", text)
    for index, requirement in enumerate(requirements):
        yield from _validate_requirement(requirement, f"{path}.requirements[{index}]", labels=labels)


def _validate_requirement(requirement: Selector, path: str, *, labels: bool) -> Iterator[FieldError]:
    key, operator, values = requirement.get("key", ""), requirement.get("operator", ""), requirement.get("values", ())
    if not labels and not key:
        yield required(f"{path}.key", "must be specified")
    if operator in ("In", "NotIn") and not values:
        yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    if operator in ("Exists", "DoesNotExist") and values:
        yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    if labels:
        yield from validate_qualified_name(key, f"{path}.key")
        for index, value in enumerate(values):
            for text in label_value_errors(value):
                yield invalid(f"{path}.values[{index}]", value, text)


def selector_errors(attributes: Mapping[str, Any]) -> str:
    """Return the evaluation error for selectors that cannot be parsed, "" without one."""
    found = []
    for name in (_FIELDS, _LABELS):
        requirements = attributes.get(name, {}).get("requirements", ())
        invalid_ones = [each for each in requirements if not _is_parsed(each, labels=name == _LABELS)]
        if len(invalid_ones) < len(requirements) and invalid_ones:
            found.append(f"{_PATH}.{name} partially ignored due to parse error")
        elif invalid_ones or not _is_raw_parsed(attributes.get(name, {}).get("rawSelector", ""), name):
            found.append(f"{_PATH}.{name} ignored due to parse error")
    return "; ".join(found)


def _is_parsed(requirement: Selector, *, labels: bool) -> bool:
    operator = requirement.get("operator", "")
    if labels:
        return operator in ("In", "NotIn", "Exists", "DoesNotExist")
    return operator in ("In", "NotIn") and len(requirement.get("values", ())) == 1


def _is_raw_parsed(text: str, name: str) -> bool:
    try:
        (LabelSelector if name == _LABELS else FieldSelector).parse(text)
    except ValueError:
        return False
    return True
