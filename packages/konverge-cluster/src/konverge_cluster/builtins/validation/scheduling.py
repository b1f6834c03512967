"""Validation of affinities, tolerations and topology spread constraints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from konverge.objects.names import label_value_errors
from konverge_cluster.api.field_errors import duplicate, forbidden, invalid, required, unsupported
from konverge_cluster.builtins.validation.labels import validate_label_selector
from konverge_cluster.builtins.validation.values import (
    FieldErrors,
    validate_dns_label,
    validate_dns_subdomain,
    validate_greater_than_zero,
    validate_qualified_name,
)

__all__ = [
    "validate_affinity",
    "validate_node_selector",
    "validate_spread_constraints",
    "validate_taint_effect",
    "validate_tolerations",
]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def validate_affinity(affinity: dict[str, Any], path: str) -> FieldErrors:
    if "nodeAffinity" in affinity:
        yield from _validate_node_affinity(affinity["nodeAffinity"], f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        if name in affinity:
            yield from _validate_pod_affinity(affinity[name], f"{path}.{name}")


def _validate_node_affinity(affinity: dict[str, Any], path: str) -> FieldErrors:
    if _REQUIRED in affinity:
        yield from validate_node_selector(affinity[_REQUIRED], f"{path}.{_REQUIRED}")
    for index, term in enumerate(affinity.get(_PREFERRED, ())):
        where = f"{path}.{_PREFERRED}[{index}]"
        yield from _validate_weight(term["weight"], where)
        yield from _validate_node_term(term["preference"], f"{where}.preference", check_values=False)


def _validate_weight(weight: int, path: str) -> FieldErrors:
    if not 1 <= weight <= 100:
        yield invalid(f"{path}.weight", weight, "must be in the range 1-100")


def validate_node_selector(selector: dict[str, Any], path: str) -> FieldErrors:
    terms = selector["nodeSelectorTerms"]
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms or ()):
        yield from _validate_node_term(term, f"{path}.nodeSelectorTerms[{index}]")


def _validate_node_term(term: dict[str, Any], path: str, *, check_values: bool = True) -> FieldErrors:
    for index, requirement in enumerate(term.get("matchExpressions", ())):
        yield from _validate_node_requirement(
            requirement, f"{path}.matchExpressions[{index}]", check_values=check_values
        )
    for index, requirement in enumerate(term.get("matchFields", ())):
        yield from _validate_node_field(requirement, f"{path}.matchFields[{index}]")


def _validate_node_requirement(requirement: dict[str, Any], path: str, *, check_values: bool) -> FieldErrors:
    operator, values = requirement["operator"], requirement.get("values", ())
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from validate_qualified_name(requirement["key"], f"{path}.key")
    if check_values:
        for index, value in enumerate(values):
            for text in label_value_errors(value):
                yield invalid(f"{path}.values[{index}]", value, text)


def _validate_node_field(requirement: dict[str, Any], path: str) -> FieldErrors:
    operator, values = requirement["operator"], requirement.get("values", ())
    if operator not in ("In", "NotIn"):
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", text)
    if requirement["key"] != "metadata.name":
        yield invalid(f"{path}.key", requirement["key"], "not a valid field selector key")
        return
    for index, value in enumerate(values):
        yield from validate_dns_subdomain(value, f"{path}.values[{index}]")


def _validate_pod_affinity(affinity: dict[str, Any], path: str) -> FieldErrors:
    for index, term in enumerate(affinity.get(_REQUIRED, ())):
        yield from _validate_pod_term(term, f"{path}.{_REQUIRED}[{index}]")
    for index, weighted in enumerate(affinity.get(_PREFERRED, ())):
        where = f"{path}.{_PREFERRED}[{index}]"
        yield from _validate_weight(weighted["weight"], where)
        yield from _validate_pod_term(weighted["podAffinityTerm"], f"{where}.podAffinityTerm")


def _validate_pod_term(term: dict[str, Any], path: str) -> FieldErrors:
    yield from validate_label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    yield from validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces", ()):
        yield from validate_dns_label(name, f"{path}.namespace")
    if not term["topologyKey"]:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from validate_qualified_name(term["topologyKey"], f"{path}.topologyKey")


def validate_tolerations(tolerations: Iterable[dict[str, Any]], path: str) -> FieldErrors:
    for index, toleration in enumerate(tolerations):
        yield from _validate_toleration(toleration, f"{path}[{index}]")


def _validate_toleration(toleration: dict[str, Any], path: str) -> FieldErrors:
    key, operator, effect = (toleration.get(name, "") for name in ("key", "operator", "effect"))
    if key:
        yield from validate_qualified_name(key, f"{path}.key")
    elif operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, text)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        yield invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    yield from _validate_toleration_value(operator, toleration.get("value", ""), f"{path}.operator")
    if effect:
        yield from validate_taint_effect(effect, f"{path}.effect")


def _validate_toleration_value(operator: str, value: str, path: str) -> FieldErrors:
    if operator in ("Equal", ""):
        errors = label_value_errors(value)
        if errors:
            yield invalid(path, value, ";".join(errors))
    elif operator == "Exists":
        if value:
            yield invalid(path, value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("Lt", "Gt"):
        yield unsupported(path, operator, ("Equal", "Exists", "Lt", "Gt"))
    else:
        yield unsupported(path, operator, ("Equal", "Exists"))


def validate_taint_effect(effect: str, path: str) -> FieldErrors:
    if effect not in _EFFECTS:
        yield unsupported(path, effect, _EFFECTS)


def validate_spread_constraints(constraints: list[dict[str, Any]], path: str) -> FieldErrors:
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        yield from validate_greater_than_zero(constraint["maxSkew"], f"{where}.maxSkew")
        if not constraint["topologyKey"]:
            yield required(f"{where}.topologyKey", "can not be empty")
        action = constraint["whenUnsatisfiable"]
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            yield unsupported(f"{where}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        identity = (constraint["topologyKey"], action)
        if any(identity == (each["topologyKey"], each["whenUnsatisfiable"]) for each in constraints[index + 1 :]):
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{identity[0]}, {identity[1]}}}")
        yield from _validate_spread_details(constraint, where)


def _validate_spread_details(constraint: dict[str, Any], path: str) -> FieldErrors:
    domains, action = constraint.get("minDomains"), constraint["whenUnsatisfiable"]
    if domains is not None:
        yield from validate_greater_than_zero(domains, f"{path}.minDomains")
        if action != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            yield invalid(f"{path}.minDomains", domains, text)
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if name in constraint and constraint[name] not in ("Honor", "Ignore"):
            yield unsupported(f"{path}.{name}", constraint[name], ("Honor", "Ignore"))
    yield from validate_label_selector(constraint.get("labelSelector"), f"{path}.labelSelector")
