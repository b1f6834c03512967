"""Parts of a definition as the server prints them in error messages: with Go field names, empty fields included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

__all__ = ["printable_rule", "printable_schema", "printable_versions"]

_encode = msgspec.json.Encoder().encode

_FIELDS: Final = (
    ("ID", "id", ""),
    ("Schema", "$schema", ""),
    ("Ref", "$ref", None),
    ("Description", "description", ""),
    ("Type", "type", ""),
    ("Nullable", "nullable", False),
    ("Format", "format", ""),
    ("Title", "title", ""),
    ("Default", "default", None),
    ("Maximum", "maximum", None),
    ("ExclusiveMaximum", "exclusiveMaximum", False),
    ("Minimum", "minimum", None),
    ("ExclusiveMinimum", "exclusiveMinimum", False),
    ("MaxLength", "maxLength", None),
    ("MinLength", "minLength", None),
    ("Pattern", "pattern", ""),
    ("MaxItems", "maxItems", None),
    ("MinItems", "minItems", None),
    ("UniqueItems", "uniqueItems", False),
    ("MultipleOf", "multipleOf", None),
    ("Enum", "enum", None),
    ("MaxProperties", "maxProperties", None),
    ("MinProperties", "minProperties", None),
    ("Required", "required", None),
    ("Items", "items", None),
    ("AllOf", "allOf", None),
    ("OneOf", "oneOf", None),
    ("AnyOf", "anyOf", None),
    ("Not", "not", None),
    ("Properties", "properties", None),
    ("AdditionalProperties", "additionalProperties", None),
    ("PatternProperties", "patternProperties", None),
    ("Dependencies", "dependencies", None),
    ("AdditionalItems", "additionalItems", None),
    ("Definitions", "definitions", None),
    ("ExternalDocs", "externalDocs", None),
    ("Example", "example", None),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", None),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False),
    ("XIntOrString", "x-kubernetes-int-or-string", False),
    ("XListMapKeys", "x-kubernetes-list-map-keys", None),
    ("XListType", "x-kubernetes-list-type", None),
    ("XMapType", "x-kubernetes-map-type", None),
    ("XValidations", "x-kubernetes-validations", None),
)
_SCHEMA_LISTS: Final = ("allOf", "oneOf", "anyOf")
_SCHEMA_MAPS: Final = ("properties", "patternProperties", "definitions")


def printable_schema(schema: Mapping[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(_encode(_schema(schema)))


def printable_versions(versions: Sequence[Mapping[str, Any]], common_keys: frozenset[str]) -> msgspec.Raw:
    """Return the versions; `common_keys` are the fields that are the same in all of them, and printed elsewhere."""
    return msgspec.Raw(_encode([_version(each, common_keys) for each in versions]))


def printable_rule(rule: Mapping[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(_encode(_rule(rule)))


def _version(version: Mapping[str, Any], common_keys: frozenset[str]) -> dict[str, Any]:
    def own(key: str) -> Any:
        return None if key in common_keys else version.get(key)

    schema, subresources = own("schema"), own("subresources")
    columns, fields = own("additionalPrinterColumns"), own("selectableFields")
    printable = schema and {"OpenAPIV3Schema": schema.get("openAPIV3Schema") and _schema(schema["openAPIV3Schema"])}
    return {
        "Name": version.get("name", ""),
        "Served": version.get("served", False),
        "Storage": version.get("storage", False),
        "Deprecated": version.get("deprecated", False),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": printable,
        "Subresources": subresources and {"Status": subresources.get("status"), "Scale": _scale(subresources)},
        "AdditionalPrinterColumns": columns and [_column(each) for each in columns],
        "SelectableFields": fields and [{"JSONPath": each.get("jsonPath", "")} for each in fields],
    }


def _scale(subresources: Mapping[str, Any]) -> dict[str, Any] | None:
    scale = subresources.get("scale")
    if scale is None:
        return None
    return {
        "SpecReplicasPath": scale.get("specReplicasPath", ""),
        "StatusReplicasPath": scale.get("statusReplicasPath", ""),
        "LabelSelectorPath": scale.get("labelSelectorPath"),
    }


def _column(column: Mapping[str, Any]) -> dict[str, Any]:
    names = ("Name", "Type", "Format", "Description")
    printable = {name: column.get(name.lower(), "") for name in names}
    return {**printable, "Priority": column.get("priority", 0), "JSONPath": column.get("jsonPath", "")}


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _field(key, schema.get(key, empty)) for name, key, empty in _FIELDS}


def _field(key: str, value: Any) -> Any:
    if value is None:
        return None
    if key in _SCHEMA_LISTS:
        return [_schema(each) for each in value]
    if key in _SCHEMA_MAPS:
        return {name: _schema(value[name]) for name in sorted(value)}
    if key == "not":
        return _schema(value)
    if key == "items":
        many = isinstance(value, list)
        schemas = [_schema(each) for each in value] if many else None
        return {"Schema": None if many else _schema(value), "JSONSchemas": schemas}
    if key in ("additionalProperties", "additionalItems"):
        is_schema = isinstance(value, Mapping)
        return {"Allows": is_schema or value, "Schema": _schema(value) if is_schema else None}
    return [_rule(each) for each in value] if key == "x-kubernetes-validations" else value


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
