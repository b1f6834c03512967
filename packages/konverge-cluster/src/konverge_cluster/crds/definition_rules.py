"""Validation of a CustomResourceDefinition, with the messages of the real server.

The server keeps fields that all versions have in common (schema, subresources, columns, selectable fields) in one
place, and names that place in its messages: `spec.validation` rather than `spec.versions[0].schema`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from konverge.objects.names import dns_subdomain_errors, rfc1035_label_errors
from konverge_cluster.api.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
    too_many,
    unsupported,
)
from konverge_cluster.crds.field_paths import FieldPathError, resolve_path
from konverge_cluster.crds.printable_definitions import printable_versions
from konverge_cluster.crds.structural import read_structural
from konverge_cluster.crds.structural_rules import conversion_error
from konverge_cluster.webhook_client.configs import client_config_errors

__all__ = ["SchemaCheck", "common_fields", "names_errors", "spec_errors", "stored_errors"]

SchemaCheck = Callable[[Mapping[str, Any], str, bool], list[FieldError]]
"""Validates the schema of a version: `check(schema, path, has_status)`."""

_COMMON: Final = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_FIELDS: Final = 8
_MIXED_CASE: Final = "may have mixed case, but should otherwise match: "

Json = Mapping[str, Any]


def common_fields(versions: Sequence[Json]) -> frozenset[str]:
    """Return the fields that are the same in all versions."""
    return frozenset(
        key for key in _COMMON if versions and all(each.get(key) == versions[0].get(key) for each in versions)
    )


def spec_errors(spec: Json, check_schema: SchemaCheck) -> list[FieldError]:
    """Return the errors of `spec`."""
    versions: list[Json] = spec.get("versions") or []
    common = common_fields(versions)
    found = [*_group_errors(spec.get("group", "")), *_scope_errors(spec.get("scope", ""))]
    found += _missing_schemas(versions)
    for index, version in enumerate(versions):
        found += _version_errors(version, f"spec.versions[{index}]", common, check_schema)
    found += _versions_errors(versions, common)
    found += _required_names(spec.get("names") or {})
    found += names_errors(spec.get("names") or {}, "spec.names")
    if versions:
        found += _part_errors(_shared(versions), common, _COMMON, "spec", check_schema)
    return found + list(_conversion_errors(spec.get("conversion"), "spec.conversion"))


def _shared(versions: Sequence[Json]) -> Json:
    """Return the fields that all versions have in common; a status subresource in one of them counts for all."""
    with_status = (each for each in versions if (each.get("subresources") or {}).get("status") is not None)
    chosen = next(with_status, versions[0])
    return {**versions[0], "subresources": chosen.get("subresources")}


def _group_errors(group: str) -> Iterator[FieldError]:
    if not group:
        yield required("spec.group")
    elif texts := dns_subdomain_errors(group):
        yield invalid("spec.group", group, ",".join(texts))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _scope_errors(scope: str) -> Iterator[FieldError]:
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield unsupported("spec.scope", scope, ("Cluster", "Namespaced"))


def _missing_schemas(versions: Sequence[Json]) -> Iterator[FieldError]:
    for index, version in enumerate(versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")


def _version_errors(
    version: Json, path: str, common: frozenset[str], check_schema: SchemaCheck
) -> Iterator[FieldError]:
    name = version.get("name", "")
    if texts := rfc1035_label_errors(name):
        yield invalid(f"{path}.name", name, ",".join(texts))
    warning = version.get("deprecationWarning")
    for text in _warning_texts(version.get("deprecated", False), warning):
        yield invalid(f"{path}.deprecationWarning", warning, text)
    own = {key: key for key in _COMMON if key not in common}
    yield from _part_errors(version, frozenset(own), own, path, check_schema)


def _warning_texts(deprecated: bool, warning: str | None) -> Iterator[str]:
    if warning is None:
        return
    if not deprecated:
        yield "can only be set for deprecated versions"
        return
    if len(warning.encode()) > 256:
        yield "must be <= 256 characters long"
    if not warning:
        yield "must not be an empty string"
    offset = next((index for index, letter in enumerate(warning) if not letter.isprintable()), -1)
    if offset >= 0:
        byte_offset = len(warning[:offset].encode())
        yield f"must only contain printable UTF-8 characters; non-printable character found at index {byte_offset}"


def _part_errors(
    version: Json, keys: frozenset[str], names: Mapping[str, str], path: str, check_schema: SchemaCheck
) -> Iterator[FieldError]:
    """Validate the fields of a version that are in `keys`, under their names in the messages."""
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if "schema" in keys and schema is not None:
        has_status = (version.get("subresources") or {}).get("status") is not None
        yield from check_schema(schema, f"{path}.{names['schema']}.openAPIV3Schema", has_status)
    if "subresources" in keys:
        yield from _scale_errors(version.get("subresources") or {}, f"{path}.subresources")
    if "additionalPrinterColumns" in keys:
        for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
            yield from _column_errors(column, f"{path}.additionalPrinterColumns[{index}]")
    if "selectableFields" in keys and version.get("selectableFields"):
        yield from _selectable_errors(version["selectableFields"], schema, f"{path}.selectableFields")


def _simple_path_text(path: str) -> str:
    return "" if path.startswith(".") else "must be a simple json path starting with ."


def _scale_errors(subresources: Json, path: str) -> Iterator[FieldError]:
    scale = subresources.get("scale")
    if scale is None:
        return
    for key, prefix in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        value, where = scale.get(key, ""), f"{path}.scale.{key}"
        if not value:
            yield required(where)
        elif text := _simple_path_text(value):
            yield invalid(where, value, text)
        elif not value.startswith(f"{prefix}."):
            yield invalid(where, value, f"should be a json path under {prefix}")
    selector, where = scale.get("labelSelectorPath"), f"{path}.scale.labelSelectorPath"
    if not selector:
        return
    if text := _simple_path_text(selector):
        yield invalid(where, selector, text)
    elif not selector.startswith((".spec.", ".status.")):
        yield invalid(where, selector, "should be a json path under either .spec or .status")


def _column_errors(column: Json, path: str) -> Iterator[FieldError]:
    kind, column_format = column.get("type", ""), column.get("format", "")
    types = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not column.get("name"):
        yield required(f"{path}.name")
    if not kind:
        yield required(f"{path}.type", types)
    elif kind not in _COLUMN_TYPES:
        yield invalid(f"{path}.type", kind, types)
    if column_format and column_format not in _COLUMN_FORMATS:
        yield invalid(f"{path}.format", column_format, f"must be one of {','.join(_COLUMN_FORMATS)}")
    value = column.get("jsonPath", "")
    if not value:
        yield required(f"{path}.JSONPath")
    elif text := _simple_path_text(value):
        yield invalid(f"{path}.JSONPath", value, text)


def _selectable_errors(fields: Sequence[Json], schema: Json | None, path: str) -> Iterator[FieldError]:
    if schema is None or conversion_error(schema):
        yield invalid(path, "", "may only be set when validations.schema is included")
        return
    root = read_structural(schema)
    seen: set[Any] = set()
    for index, each in enumerate(fields):
        value, where = each.get("jsonPath", ""), f"{path}[{index}].jsonPath"
        if not value:
            yield required(where)
            continue
        try:
            field_path, found = resolve_path(value, root, brackets=False)
        except FieldPathError as error:
            yield invalid(where, value, f"is an invalid path: {error}")
            continue
        if value.startswith(".metadata"):
            yield invalid(where, value, "must not point to fields in metadata")
        if found.type not in ("string", "boolean", "integer"):
            text = "must point to a field of type string, boolean or integer."
            yield invalid(where, value, f"{text} Enum string fields and strings with formats are allowed.")
        if field_path in seen:
            yield duplicate(where, value)
        seen.add(field_path)
    if len(seen) > _MOST_FIELDS:
        yield too_many(path, len(seen), _MOST_FIELDS)


def _versions_errors(versions: Sequence[Json], common: frozenset[str]) -> Iterator[FieldError]:
    names = [each.get("name", "") for each in versions]
    if len(set(names)) < len(names):
        yield invalid("spec.versions", printable_versions(versions, common), "must contain unique version names")
    if sum(bool(each.get("storage")) for each in versions) != 1:
        text = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", printable_versions(versions, common), text)
    if names and (texts := rfc1035_label_errors(names[0])):
        yield invalid("spec.version", names[0], ",".join(texts))


def _required_names(names: Json) -> Iterator[FieldError]:
    for key in ("plural", "singular", "kind", "listKind"):
        if not names.get(key):
            yield required(f"spec.names.{key}")


def names_errors(names: Json, path: str) -> Iterator[FieldError]:
    """Return the errors of requested or accepted names."""
    for key, prefix in (("plural", ""), ("singular", ""), ("kind", _MIXED_CASE), ("listKind", _MIXED_CASE)):
        name = names.get(key, "")
        if name and (texts := rfc1035_label_errors(name.lower() if prefix else name)):
            yield invalid(f"{path}.{key}", name, prefix + ",".join(texts))
    yield from _listed_errors(names, path, "shortNames")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")
    yield from _listed_errors(names, path, "categories")


def _listed_errors(names: Json, path: str, key: str) -> Iterator[FieldError]:
    for index, name in enumerate(names.get(key) or ()):
        if texts := rfc1035_label_errors(name):
            yield invalid(f"{path}.{key}[{index}]", name, ",".join(texts))


def _conversion_errors(conversion: Json | None, path: str) -> Iterator[FieldError]:
    if conversion is None:
        return
    strategy = conversion.get("strategy", "")
    if not strategy:
        yield required(f"{path}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield unsupported(f"{path}.strategy", strategy, ("None", "Webhook"))
    webhook: Json = conversion.get("webhook") or {}
    config, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy == "Webhook":
        if config is None:
            yield required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
        else:
            yield from client_config_errors(config, f"{path}.webhookClientConfig")
        yield from _review_errors(reviews, f"{path}.conversionReviewVersions")
        return
    text = "should not be set when strategy is not set to Webhook"
    if config is not None:
        yield forbidden(f"{path}.webhookClientConfig", text)
    if reviews:
        yield forbidden(f"{path}.conversionReviewVersions", text)


def _review_errors(versions: list[str], path: str) -> Iterator[FieldError]:
    if not versions:
        yield required(path)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        for text in rfc1035_label_errors(version):
            yield invalid(f"{path}[{index}]", version, text)
    if not {"v1", "v1beta1"} & set(versions):
        yield invalid(path, versions, "must include at least one of v1, v1beta1")


def stored_errors(stored: Sequence[str], versions: Sequence[Json]) -> Iterator[FieldError]:
    """Return the errors of `status.storedVersions`."""
    path = "status.storedVersions"
    if not stored:
        yield invalid(path, None, "must have at least one stored version")
        return
    names = [each.get("name", "") for each in versions]
    for version in versions:
        if version.get("storage") and version.get("name", "") not in stored:
            yield invalid(path, stored, f"must have the storage version {version.get('name', '')}")
    for index, name in enumerate(stored):
        if name not in names:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions"
                f" until a storage migration ensures no data remains persisted in {name} and removes {name} from"
                " status.storedVersions"
            )
            yield invalid(f"{path}[{index}]", name, text)
