"""Defaults: from a Python field to the schema, and how the server applies them to an object."""

from __future__ import annotations

import copy
import datetime
import uuid
from typing import Any, Final

import msgspec

from konverge.objects.codec import to_wire
from konverge.schema.primitives import OBJECT_FIELDS, PRESERVE, Schema
from konverge.schema.schema_errors import invalid_value
from konverge.schema.structs import Constant

__all__ = ["ABSENT", "default_of", "prune_and_default"]

ABSENT: Final = object()
"""The field has no default on the wire: it is omitted."""

_GENERATED_TYPES: Final = (datetime.datetime, datetime.date, uuid.UUID)


def default_of(info: msgspec.structs.FieldInfo, path: str) -> Any:
    """Return the default of a field as plain JSON, or ABSENT if an object omits the field by default.

    Raises: ValueError if the default is different for each object, or cannot be encoded.
    """
    value = _value_of(info, path)
    if value is None or value is msgspec.UNSET or value is ABSENT:
        return ABSENT
    if info.default_factory in (list, dict, set):
        return ABSENT
    wire = to_wire(value)
    if wire is None and isinstance(value, float):
        raise invalid_value(path, f"the default {value} is not a JSON number", "write a number")
    return ABSENT if wire is None else wire


def _value_of(info: msgspec.structs.FieldInfo, path: str) -> Any:
    if info.default_factory is msgspec.NODEFAULT:
        return ABSENT if info.default is msgspec.NODEFAULT else info.default
    value = info.default_factory()
    if isinstance(info.default_factory, (Constant, type)):
        return value
    if isinstance(value, _GENERATED_TYPES) or to_wire(value) != to_wire(info.default_factory()):
        what = "the default is different for each object, and a schema has one default for all"
        raise invalid_value(path, what, "write `X | None = None` and let the operator set it")
    return value


def prune_and_default(schema: Schema, value: Any) -> Any:
    """Return the value as the server validates it: without nulls and unknown fields, and with defaults."""
    if isinstance(value, dict):
        return _prune_and_default_object(schema, value)
    if isinstance(value, list) and "items" in schema:
        return [_or_default(schema["items"], item) for item in value]
    return value


def _prune_and_default_object(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Schema] = schema.get("properties", {})
    others: Schema | None = schema.get("additionalProperties")
    result: dict[str, Any] = {}
    is_object = OBJECT_FIELDS.keys() <= properties.keys()
    for key, item in value.items():
        part = properties.get(key, others)
        if is_object and key in OBJECT_FIELDS:
            result[key] = item
        elif part is None:
            if schema.get(PRESERVE) or "type" not in schema:
                result[key] = item
        elif item is not None or part.get("nullable") or "default" in part:
            result[key] = _or_default(part, item)
    for key, part in properties.items():
        if key not in result and "default" in part:
            result[key] = prune_and_default(part, copy.deepcopy(part["default"]))
    return result


def _or_default(schema: Schema, value: Any) -> Any:
    if value is None and not schema.get("nullable") and "default" in schema:
        value = copy.deepcopy(schema["default"])
    return prune_and_default(schema, value)
