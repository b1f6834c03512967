"""Validation of namespaces, nodes, quotas and limit ranges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from konverge.objects.names import label_value_errors
from konverge.objects.quantities import Quantity
from konverge_cluster.api.field_errors import FieldError, duplicate, forbidden, invalid, required
from konverge_cluster.builtins.validation.resources import (
    is_huge_pages,
    is_native,
    validate_container_resource_name,
    validate_quantity_value,
    validate_resource_name,
)
from konverge_cluster.builtins.validation.scheduling import validate_taint_effect
from konverge_cluster.builtins.validation.values import IMMUTABLE, FieldErrors, validate_cidr, validate_qualified_name

__all__ = [
    "validate_limit_range",
    "validate_namespace",
    "validate_namespace_finalizers",
    "validate_namespace_phase",
    "validate_node",
    "validate_node_update",
    "validate_resource_quota",
    "validate_resource_quota_update",
]

Spec = dict[str, Any]

_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
_LIMIT_TYPES: Final = ("Pod", "Container", "PersistentVolumeClaim")
_SCOPES: Final = (
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
)
_BARE_SCOPES: Final = tuple(scope for scope in _SCOPES if scope not in ("PriorityClass", "VolumeAttributesClass"))
_EXISTS_ONLY: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_VALUES_NEEDED: Final = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
_NO_VALUES: Final = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
_CONFLICTS: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_QUOTA_NAMES: Final = frozenset(
    (
        *("cpu", "memory", "ephemeral-storage"),
        *(f"requests.{name}" for name in ("cpu", "memory", "storage", "ephemeral-storage")),
        *(f"limits.{name}" for name in ("cpu", "memory", "ephemeral-storage")),
        *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
        *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
    )
)
_POD_SCOPED: Final = frozenset(
    ("pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
)
_NO_PROVIDER_CHANGE: Final = 'node updates may not change providerID except from "" to valid'
_NO_CIDR_CHANGE: Final = 'node updates may not change podCIDR except from "" to valid'


def validate_namespace(new: Spec) -> FieldErrors:
    return validate_namespace_finalizers(new["spec"].get("finalizers", ()), lambda _: "spec.finalizers")


def validate_namespace_finalizers(finalizers: Iterable[str], path_of: Any) -> FieldErrors:
    for index, name in enumerate(finalizers):
        path = path_of(index)
        yield from validate_qualified_name(name, path)
        if "/" not in name and name not in _FINALIZERS:
            yield invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")


def validate_namespace_phase(new: Spec) -> FieldErrors:
    phase = new["status"].get("phase", "")
    if "deletionTimestamp" in new["metadata"]:
        if phase != "Terminating":
            text = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            yield invalid("status.Phase", phase, text)
    elif phase != "Active":
        yield invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")


def validate_node(new: Spec) -> FieldErrors:
    yield from _validate_taints(new["spec"].get("taints", ()), "metadata.taints")
    yield from _validate_node_resources(new["status"])
    ranges = new["spec"].get("podCIDRs", [])
    errors = [
        problem for index, value in enumerate(ranges) for problem in validate_cidr(value, f"spec.podCIDRs[{index}]")
    ]
    yield from errors
    if len(ranges) > 2 or (len(ranges) == 2 and not errors and len({":" in each for each in ranges}) == 1):
        yield invalid("spec.podCIDRs", ranges, "may specify no more than one CIDR for each IP family")


def _validate_taints(taints: Iterable[Spec], path: str) -> FieldErrors:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        where = f"{path}[{index}]"
        yield from validate_qualified_name(taint["key"], f"{where}.key")
        errors = label_value_errors(taint.get("value", ""))
        if errors:
            yield invalid(f"{where}.value", taint["value"], ";".join(errors))
        if not taint["effect"]:
            yield required(f"{where}.effect")
        else:
            yield from validate_taint_effect(taint["effect"], f"{where}.effect")
        identity = (taint["key"], taint["effect"])
        if identity in seen:
            identity_value = {"Key": identity[0], "Value": taint.get("value", ""), "Effect": identity[1]}
            text = "taints must be unique by key and effect pair"
            value = {**identity_value, "TimeAdded": taint.get("timeAdded")}
            yield FieldError("FieldValueDuplicate", where, value, text)
        seen.add(identity)


def _validate_node_resources(status: Spec) -> FieldErrors:
    for kind in ("capacity", "allocatable"):
        for name, amount in status.get(kind, {}).items():
            yield from validate_quantity_value(name, amount, f"status.{kind}.{name}")


def validate_node_update(new: Spec, old: Spec) -> FieldErrors:
    spec, old_spec = new["spec"], old["spec"]
    yield from _validate_node_resources(new["status"])
    seen: list[Spec] = []
    for index, address in enumerate(new["status"].get("addresses", ())):
        if address in seen:
            value = {"Type": address["type"], "Address": address["address"]}
            yield duplicate(f"status.addresses[{index}]", value)
        seen.append(address)
    if old_spec.get("podCIDRs") and old_spec["podCIDRs"] != spec.get("podCIDRs"):
        yield forbidden("spec.podCIDRs", _NO_CIDR_CHANGE)
    if old_spec.get("providerID") and old_spec["providerID"] != spec.get("providerID"):
        yield forbidden("spec.providerID", _NO_PROVIDER_CHANGE)
    yield from _validate_taints(spec.get("taints", ()), "metadata.taints")


def validate_resource_quota(new: Spec) -> FieldErrors:
    spec = new["spec"]
    for name, amount in spec.get("hard", {}).items():
        path = f"spec.hard[{name}]"
        yield from validate_resource_name(name, path)
        if "/" not in name and not _is_quota_name(name):
            yield invalid(path, name, "must be a standard resource for quota")
        yield from validate_quantity_value(name, amount, path)
    yield from _validate_scopes(spec)
    yield from _validate_scope_selector(spec)


def _is_quota_name(name: str) -> bool:
    return name in _QUOTA_NAMES or is_huge_pages(name.removeprefix("requests."))


def _validate_scopes(spec: Spec) -> FieldErrors:
    scopes = spec.get("scopes", [])
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid("spec.scopes", scopes, "unsupported scope")
        for name in sorted(spec.get("hard", {})):
            if _is_quota_name(name) and not _scope_fits(scope, name):
                yield invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    for pair in _CONFLICTS:
        if set(pair) <= set(scopes):
            yield invalid("spec.scopes", scopes, "conflicting scopes")


def _validate_scope_selector(spec: Spec) -> FieldErrors:
    path = "spec.scopeSelector.matchExpressions"
    requirements = spec.get("scopeSelector", {}).get("matchExpressions", [])
    for requirement in requirements:
        scope, operator = requirement["scopeName"], requirement["operator"]
        if scope not in _SCOPES:
            yield invalid(f"{path}.scopeName", scope, "unsupported scope")
        for name in sorted(spec.get("hard", {})):
            if _is_quota_name(name) and not _scope_fits(scope, name):
                yield invalid(path, _internal_selector(requirements), "unsupported scope applied to resource")
        if operator != "Exists" and scope in _BARE_SCOPES:
            yield invalid(f"{path}.operator", operator, _EXISTS_ONLY)
        values = requirement.get("values", [])
        if operator in ("In", "NotIn"):
            if not values:
                yield required(f"{path}.values", _VALUES_NEEDED)
        elif operator not in ("Exists", "DoesNotExist"):
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
        elif values:
            yield invalid(f"{path}.values", values, _NO_VALUES)
    for pair in _CONFLICTS:
        if set(pair) <= {each["scopeName"] for each in requirements}:
            yield invalid(path, spec.get("scopes"), "conflicting scopes")


def _internal_selector(requirements: list[Spec]) -> Spec:
    """Return a selector with the field names of the server's internal type."""
    expressions = [
        {"ScopeName": each["scopeName"], "Operator": each["operator"], "Values": each.get("values")}
        for each in requirements
    ]
    return {"MatchExpressions": expressions}


def _scope_fits(scope: str, name: str) -> bool:
    if scope == "BestEffort":
        return name == "pods"
    if scope == "VolumeAttributesClass":
        return name in ("persistentvolumeclaims", "requests.storage")
    return scope not in _SCOPES or name in _POD_SCOPED


def validate_resource_quota_update(new: Spec, old: Spec) -> FieldErrors:
    scopes = new["spec"].get("scopes", [])
    if set(scopes) != set(old["spec"].get("scopes", ())):
        yield invalid("spec.scopes", scopes, IMMUTABLE)


def validate_limit_range(new: Spec) -> FieldErrors:
    seen: set[str] = set()
    for index, item in enumerate(new["spec"]["limits"] or ()):
        path = f"spec.limits[{index}]"
        yield from _validate_limit_type(item["type"], f"{path}.type")
        if item["type"] in seen:
            yield duplicate(f"{path}.type", item["type"])
        seen.add(item["type"])
        yield from _validate_limit_names(item, path)
        limits: list[Spec] = [item[kind] for kind in _LIMIT_KINDS if kind in item]
        names = {name for each in limits for name in each}
        for name in sorted(names):
            yield from _validate_limit_bounds(item, name, path)


_LIMIT_KINDS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def _validate_limit_type(name: str, path: str) -> FieldErrors:
    errors = list(validate_qualified_name(name, path))
    yield from errors
    if not errors and "/" not in name and name not in _LIMIT_TYPES:
        yield invalid(path, name, "must be a standard limit type or fully qualified")


def _validate_limit_names(item: Spec, path: str) -> FieldErrors:
    rule = validate_container_resource_name if item["type"] in ("Pod", "Container") else validate_resource_name
    for kind in ("max", "min", "default", "defaultRequest"):
        if item["type"] == "Pod" and kind.startswith("default"):
            if item.get(kind):
                yield forbidden(f"{path}.{kind}", "may not be specified when `type` is 'Pod'")
            continue
        for name in item.get(kind, ()):
            yield from rule(name, f"{path}.{kind}[{name}]")
    bounded = "storage" in item.get("min", {}) or "storage" in item.get("max", {})
    if item["type"] == "PersistentVolumeClaim" and not bounded:
        text = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{path}.limits", text)
    for name in item.get("maxLimitRequestRatio", ()):
        yield from rule(name, f"{path}.maxLimitRequestRatio[{name}]")


def _validate_limit_bounds(item: Spec, name: str, path: str) -> FieldErrors:
    low, high, default, request, ratio = (
        item.get(kind, {}).get(name) for kind in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
    )
    comparisons = (
        (low, high, "min", low, "min value {} is greater than max value {}"),
        (low, request, "defaultRequest", request, "min value {} is greater than default request value {}"),
        (request, high, "defaultRequest", request, "default request value {} is greater than max value {}"),
        (
            request,
            default,
            "defaultRequest",
            request,
            "default request value {} is greater than default limit value {}",
        ),
        (low, default, "default", low, "min value {} is greater than default value {}"),
        (default, high, "default", high, "default value {} is greater than max value {}"),
    )
    for smaller, larger, kind, value, text in comparisons:
        if smaller is not None and larger is not None and Quantity(smaller) > Quantity(larger):
            yield invalid(f"{path}.{kind}[{name}]", value, text.format(smaller, larger))
    if ratio is not None:
        yield from _validate_limit_ratio(ratio, low, high, f"{path}.maxLimitRequestRatio[{name}]")
    fixed = is_huge_pages(name) or not is_native(name)
    if fixed and None not in (default, request) and Quantity(default or "0") != Quantity(request or "0"):
        text = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield invalid(f"{path}.defaultRequest[{name}]", request, text)


def _validate_limit_ratio(ratio: str, low: str | None, high: str | None, path: str) -> FieldErrors:
    if Quantity(ratio) < 1:
        yield invalid(path, ratio, f"ratio {ratio} is less than 1")
    if low is not None and high is not None and Quantity(low):
        most = Quantity(high).milli() / Quantity(low).milli()
        if Quantity(ratio).milli() / 1000 > most:
            yield invalid(path, ratio, f"ratio {ratio} is greater than max/min = {most:f}")
