"""Validation of environment variables, and of the pod fields and resources that they and volumes reference."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from konverge.objects.quantities import Quantity
from konverge_cluster.api.field_errors import invalid, required, unsupported
from konverge_cluster.api.names import config_key_errors
from konverge_cluster.builtins.validation.values import (
    FieldErrors,
    validate_dns_subdomain,
    validate_name,
    validate_qualified_name,
)

__all__ = [
    "VOLUME_FIELDS",
    "validate_environment",
    "validate_environment_sources",
    "validate_field_reference",
    "validate_resource_reference",
]

_ENVIRONMENT_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_KNOWN_FIELDS: Final = frozenset(
    (*_ENVIRONMENT_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase")
)
_RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_SUBSCRIPT: Final = re.compile(r"(.+)\['(.+)'\]")
_BYTE_DIVISORS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_NAME_TEXT: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def validate_environment(variables: Iterable[dict[str, Any]], path: str) -> FieldErrors:
    for index, variable in enumerate(variables):
        where = f"{path}[{index}]"
        if not variable["name"]:
            yield required(f"{where}.name")
        else:
            yield from validate_name(variable["name"], _name_errors, f"{where}.name")
        if "valueFrom" in variable:
            yield from _validate_value_source(variable, f"{where}.valueFrom")


def _name_errors(name: str) -> list[str]:
    return [] if all(" " <= letter <= "~" and letter != "=" for letter in name) else [_NAME_TEXT]


def _validate_value_source(variable: dict[str, Any], path: str) -> FieldErrors:
    source = variable["valueFrom"]
    if "fieldRef" in source:
        yield from validate_field_reference(source["fieldRef"], _ENVIRONMENT_FIELDS, f"{path}.fieldRef")
    if "resourceFieldRef" in source:
        yield from validate_resource_reference(source["resourceFieldRef"], f"{path}.resourceFieldRef")
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            yield from _validate_key_reference(source[name], f"{path}.{name}")
    count = sum(name in source for name in _SOURCES)
    if not count:
        listed = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid(path, "", f"must specify one of: {listed}")
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif count > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _validate_key_reference(reference: dict[str, Any], path: str) -> FieldErrors:
    yield from validate_dns_subdomain(reference.get("name", ""), f"{path}.name")
    if not reference["key"]:
        yield required(f"{path}.key")
    else:
        yield from validate_name(reference["key"], config_key_errors, f"{path}.key")


def validate_field_reference(reference: dict[str, Any], allowed: tuple[str, ...], path: str) -> FieldErrors:
    """Validate a reference to a field of the pod."""
    field = reference["fieldPath"]
    if not field:
        yield required(f"{path}.fieldPath")
        return
    subscript = _SUBSCRIPT.fullmatch(field)
    error = _conversion_error(reference.get("apiVersion", ""), field, subscript)
    if error:
        yield invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {error}")
    elif subscript is not None:
        key = subscript[2].lower() if subscript[1] == "metadata.annotations" else subscript[2]
        yield from validate_qualified_name(key, path)
    elif field not in allowed:
        yield unsupported(f"{path}.fieldPath", field, allowed)


def _conversion_error(version: str, field: str, subscript: re.Match[str] | None) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscript is not None:
        known = subscript[1] in ("metadata.annotations", "metadata.labels")
        return "" if known else f"field label does not support subscript: {field}"
    return "" if field in _KNOWN_FIELDS else f"field label not supported: {field}"


def validate_resource_reference(reference: dict[str, Any], path: str, *, in_volume: bool = False) -> FieldErrors:
    """Validate a reference to the resources of a container."""
    name = reference["resource"]
    if in_volume and not reference.get("containerName"):
        yield required(f"{path}.containerName")
    elif not name:
        yield required(f"{path}.resource")
    elif name not in _RESOURCES and not name.startswith(("limits.hugepages-", "requests.hugepages-")):
        yield unsupported(f"{path}.resource", name, _RESOURCES)
    yield from _validate_divisor(name, reference.get("divisor", "0"), f"{path}.divisor")


def _validate_divisor(name: str, divisor: str, path: str) -> FieldErrors:
    if not Quantity(divisor):
        return
    kind = name.partition(".")[2]
    if kind == "cpu":
        if divisor not in ("1m", "1"):
            yield invalid(path, name, "only divisor's values 1m and 1 are supported with the cpu resource")
        return
    resource_name = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(kind)
    resource_name = resource_name or ("hugepages" if kind.startswith("hugepages-") else None)
    if resource_name and divisor not in _BYTE_DIVISORS:
        listed = ", ".join(_BYTE_DIVISORS)
        yield invalid(path, name, f"only divisor's values {listed} are supported with the {resource_name} resource")


def validate_environment_sources(sources: Iterable[dict[str, Any]], path: str) -> FieldErrors:
    """Validate references to ConfigMaps and Secrets whose keys become variables."""
    for index, source in enumerate(sources):
        where = f"{path}[{index}]"
        if source.get("prefix"):
            yield from validate_name(source["prefix"], _name_errors, f"{where}.prefix")
        present = [name for name in ("configMapRef", "secretRef") if name in source]
        for name in present:
            if not source[name].get("name"):
                yield required(f"{where}.{name}.name")
            else:
                yield from validate_dns_subdomain(source[name]["name"], f"{where}.{name}.name")
        if not present:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(present) > 1:
            yield invalid(path, "", "may not have more than one field specified at a time")
