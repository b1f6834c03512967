"""Validation of resource requests and limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from konverge.objects.names import label_key_errors
from konverge.objects.quantities import Quantity
from konverge_cluster.api.field_errors import FieldError, duplicate, forbidden, invalid, required, unsupported
from konverge_cluster.builtins.validation.values import FieldErrors, validate_qualified_name

__all__ = [
    "is_extended",
    "is_huge_pages",
    "is_native",
    "validate_container_resource_name",
    "validate_container_resources",
    "validate_pod_resource_name",
    "validate_quantity_value",
    "validate_resource_name",
    "validate_resource_requirements",
]

_CONTAINER: Final = ("cpu", "memory", "ephemeral-storage")
_COUNTED: Final = (
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
)
_STANDARD: Final = frozenset(
    (
        *_CONTAINER,
        *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _CONTAINER),
        *_COUNTED[:7],
        "storage",
        "requests.storage",
        *_COUNTED[7:],
    )
)
_NOT_INTEGER: Final = "must be an integer"


def is_huge_pages(name: str) -> bool:
    return name.startswith("hugepages-")


def is_native(name: str) -> bool:
    """Report whether a resource belongs to Kubernetes itself."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    if is_native(name) or name.startswith("requests."):
        return False
    return not label_key_errors(f"requests.{name}")


def validate_resource_name(name: str, path: str) -> FieldErrors:
    errors = list(validate_qualified_name(name, path))
    yield from errors
    if not errors and "/" not in name and name not in _STANDARD and not is_huge_pages(name):
        yield invalid(path, name, "must be a standard resource type or fully qualified")


def validate_container_resource_name(name: str, path: str) -> FieldErrors:
    yield from validate_resource_name(name, path)
    if "/" not in name:
        if name not in _CONTAINER and not is_huge_pages(name):
            yield invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def validate_pod_resource_name(name: str, path: str) -> FieldErrors:
    errors = list(validate_resource_name(name, path))
    yield from errors
    if not errors and name not in ("cpu", "memory") and not is_huge_pages(name):
        yield unsupported(path, name, ("cpu", "hugepages-", "memory"))


def validate_quantity_value(name: str, amount: str, path: str) -> FieldErrors:
    quantity = Quantity(amount)
    if quantity < 0:
        yield invalid(path, amount, "must be greater than or equal to 0")
    if (name in _COUNTED or is_extended(name)) and quantity.milli() % 1000:
        yield invalid(path, amount, _NOT_INTEGER)


def validate_container_resources(resources: dict[str, Any], claims: frozenset[str], path: str) -> FieldErrors:
    return validate_resource_requirements(resources, validate_container_resource_name, claims, path)


def validate_resource_requirements(
    resources: dict[str, Any], validate_resource: Callable[[str, str], FieldErrors], claims: frozenset[str], path: str
) -> FieldErrors:
    """Validate limits and requests, individually and against each other."""
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for name, amount in limits.items():
        yield from _validate_amount(name, amount, validate_resource, f"{path}.limits[{name}]")
    for name, amount in requests.items():
        yield from _validate_request(name, amount, limits, validate_resource, path)
    names = {*limits, *requests}
    if any(map(is_huge_pages, names)) and not names & {"cpu", "memory"}:
        yield forbidden(path, "HugePages require cpu or memory")
    yield from _validate_claims(resources.get("claims", ()), claims, f"{path}.claims")


def _validate_amount(
    name: str, amount: str, validate_resource: Callable[[str, str], FieldErrors], path: str
) -> FieldErrors:
    yield from validate_resource(name, path)
    yield from validate_quantity_value(name, amount, path)
    if is_huge_pages(name):
        yield from _validate_huge_pages(name, amount, path)


def _validate_huge_pages(name: str, amount: str, path: str) -> FieldErrors:
    try:
        size = Quantity(name.removeprefix("hugepages-")).whole()
    except ValueError:
        return
    if size and Quantity(amount).whole() % size:
        yield invalid(path, amount, f"{amount} is not positive integer multiple of {name}")


def _validate_request(
    name: str, amount: str, limits: dict[str, str], validate_resource: Callable[[str, str], FieldErrors], path: str
) -> FieldErrors:
    where = f"{path}.requests[{name}]"
    yield from validate_resource(name, where)
    yield from validate_quantity_value(name, amount, where)
    fixed = is_huge_pages(name) or not is_native(name)
    limit = limits.get(name)
    if limit is not None:
        if fixed and Quantity(amount) != Quantity(limit):
            yield invalid(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}")
        elif Quantity(amount) > Quantity(limit):
            yield invalid(f"{path}.requests", amount, f"must be less than or equal to {name} limit of {limit}")
    elif fixed:
        yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
    if is_huge_pages(name):
        yield from _validate_huge_pages(name, amount, where)


def _validate_claims(used: Any, declared: frozenset[str], path: str) -> FieldErrors:
    seen: set[str] = set()
    for index, claim in enumerate(used):
        name, where = claim["name"], f"{path}[{index}]"
        key = f"{name}/{claim['request']}" if claim.get("request") else name
        if not name:
            yield required(where)
            continue
        if name in seen or key in seen:
            yield duplicate(where, name if name in seen else key)
        elif key == name and any(each.startswith(f"{name}/") for each in seen):
            yield duplicate(where, name)
        seen.add(key)
        if name not in declared:
            listed = f": {', '.join(sorted(declared))}" if declared else " which is empty"
            text = f"must be one of the names in pod.spec.resourceClaims{listed}"
            yield FieldError("FieldValueNotFound", where, name, text)
