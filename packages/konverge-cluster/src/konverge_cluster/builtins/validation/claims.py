"""Validation of PersistentVolumeClaims, standalone and as templates in other objects."""

from __future__ import annotations

from typing import Any, Final

from konverge.objects.quantities import Quantity
from konverge_cluster.api.field_errors import forbidden, invalid, required, unsupported
from konverge_cluster.builtins.validation.labels import (
    validate_annotation_values,
    validate_label_selector,
    validate_labels,
)
from konverge_cluster.builtins.validation.resources import validate_quantity_value
from konverge_cluster.builtins.validation.values import (
    FieldErrors,
    validate_dns_label,
    validate_dns_subdomain,
    validate_immutable,
)

__all__ = ["ACCESS_MODES", "VOLUME_MODES", "validate_claim_spec", "validate_claim_template", "validate_claim_update"]

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
_TEMPLATE_METADATA: Final = ("annotations", "labels")
_IMMUTABLE_SPEC: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def validate_claim_template(template: dict[str, Any], path: str) -> FieldErrors:
    """Validate the template of a claim that is created for each pod."""
    metadata = template["metadata"]
    yield from validate_annotation_values(metadata.get("annotations"), f"{path}.metadata.annotations")
    yield from validate_labels(metadata.get("labels"), f"{path}.metadata.labels")
    for name in metadata:
        if name not in _TEMPLATE_METADATA:
            yield forbidden(f"{path}.metadata.{name}", "cannot be set")
    yield from validate_claim_spec(template["spec"], f"{path}.spec")


def validate_claim_spec(spec: dict[str, Any], path: str) -> FieldErrors:
    if not spec.get("accessModes"):
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from validate_label_selector(spec.get("selector"), f"{path}.selector")
    yield from _validate_access_modes(spec.get("accessModes", []), f"{path}.accessModes")
    yield from _validate_size(spec["resources"].get("requests", {}).get("storage"), f"{path}.resources[storage]")
    if spec.get("storageClassName"):
        yield from validate_dns_subdomain(spec["storageClassName"], f"{path}.storageClassName")
    if spec["volumeMode"] not in VOLUME_MODES:
        yield unsupported(f"{path}.volumeMode", spec["volumeMode"], VOLUME_MODES)
    for name in ("dataSource", "dataSourceRef"):
        if name in spec:
            yield from _validate_source(spec[name], f"{path}.{name}")
    yield from _validate_equal_sources(spec, path)
    if spec.get("volumeAttributesClassName"):
        yield from validate_dns_subdomain(spec["volumeAttributesClassName"], f"{path}.volumeAttributesClassName")


def _validate_access_modes(modes: list[str], path: str) -> FieldErrors:
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield unsupported(path, mode, ACCESS_MODES)
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        yield forbidden(path, "may not use ReadWriteOncePod with other access modes")


def _validate_size(amount: str | None, path: str) -> FieldErrors:
    if amount is None:
        yield required(path)
    elif Quantity(amount) <= 0:
        yield invalid(path, amount, "must be greater than zero")
    else:
        yield from validate_quantity_value("storage", amount, path)


def _validate_source(source: dict[str, Any], path: str) -> FieldErrors:
    for name in ("name", "kind"):
        if not source[name]:
            yield required(f"{path}.{name}")
    group = source.get("apiGroup") or ""
    if not group and source["kind"] != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield invalid(path, source["kind"], text)
    if group:
        yield from validate_dns_subdomain(group, f"{path}.apiGroup")
    if source.get("namespace"):
        yield from validate_dns_label(source["namespace"], f"{path}.namespace")


def _validate_equal_sources(spec: dict[str, Any], path: str) -> FieldErrors:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or reference is None:
        return
    # The real server passes the field's path as the value, which prints as an empty object.
    if reference.get("namespace"):
        yield invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif any((source.get(name) or "") != (reference.get(name) or "") for name in ("apiGroup", "kind", "name")):
        yield invalid(path, {}, "must match dataSourceRef")


def validate_claim_update(new: dict[str, Any], old: dict[str, Any]) -> FieldErrors:
    spec, old_spec = new["spec"], old["spec"]
    bound = new["status"].get("phase") == "Bound"
    if _comparable(spec, old_spec, bound=bound) != _comparable(old_spec, old_spec, bound=bound):
        yield forbidden("spec", _IMMUTABLE_SPEC)
    size, old_size = (Quantity(each["resources"].get("requests", {}).get("storage", "0")) for each in (spec, old_spec))
    if size < old_size and size <= Quantity(old["status"].get("capacity", {}).get("storage", "0")):
        yield forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")
    yield from validate_immutable(spec.get("volumeMode"), old_spec.get("volumeMode"), "volumeMode")


def _comparable(spec: dict[str, Any], old_spec: dict[str, Any], *, bound: bool) -> dict[str, Any]:
    """Return a spec without mutable fields: an unset volume, and the size and attributes class of a bound claim."""
    comparable = dict(spec)
    if not old_spec.get("volumeName"):
        comparable.pop("volumeName", None)
    if "storageClassName" not in old_spec:
        comparable.pop("storageClassName", None)
    if bound:
        requests = {name: each for name, each in spec["resources"].get("requests", {}).items() if name != "storage"}
        comparable["resources"] = {**spec["resources"], "requests": requests}
        comparable.pop("volumeAttributesClassName", None)
    return comparable
