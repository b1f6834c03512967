"""JSON paths of columns, scale and selectable fields, checked against the schema when the class is created."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from konverge.schema.primitives import PRESERVE, Schema
from konverge.schema.schema_errors import invalid_value

__all__ = ["column_type", "follow", "schema_at"]

# A name with escaped dots, a quoted name, or a selection of items: all, by index, by a filter.
_STEP: Final = re.compile(r"\.((?:\\.|[^.\[\]\\])+)|\['([^']+)'\]|\[(\*|-?[0-9:]+|\?\(.*?\))\]")
_ANYTHING: Final[Mapping[str, Any]] = {PRESERVE: True}
_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_TEXTS: Final[Mapping[str, Any]] = {"type": "object", "additionalProperties": _TEXT}
_TIME: Final[Mapping[str, Any]] = {"type": "string", "format": "date-time"}
_NUMBER: Final[Mapping[str, Any]] = {"type": "integer"}
_STRUCTS: Final[Mapping[str, Any]] = {"type": "array", "items": _ANYTHING}
_METADATA: Final[Mapping[str, Any]] = {
    "name": _TEXT,
    "generateName": _TEXT,
    "namespace": _TEXT,
    "uid": _TEXT,
    "resourceVersion": _TEXT,
    "generation": _NUMBER,
    "creationTimestamp": _TIME,
    "deletionTimestamp": _TIME,
    "deletionGracePeriodSeconds": _NUMBER,
    "labels": _TEXTS,
    "annotations": _TEXTS,
    "finalizers": {"type": "array", "items": _TEXT},
    "ownerReferences": _STRUCTS,
    "managedFields": _STRUCTS,
}


def schema_at(root: Schema, path: str, place: str) -> Schema:
    """Return the schema at a JSON path from the root of a kind; `place` is the location of the path, for the message.

    Raises: ValueError if the path is malformed or not in the schema.
    """
    metadata = {"type": "object", "properties": _METADATA}
    return follow({**root, "properties": {**root["properties"], "metadata": metadata}}, path, place)


def follow(schema: Schema, path: str, place: str) -> Schema:
    """Return the schema at a JSON path from any schema; see `schema_at`."""
    steps = list(_STEP.finditer(path))
    if not path.startswith(".") or "".join(step[0] for step in steps) != path:
        raise invalid_value(place, f"{path!r} is not a JSON path", "write a path such as '.spec.replicas'")
    for step in steps:
        name, quoted, selector = step.groups()
        found = _items(schema) if selector else _property(schema, quoted or re.sub(r"\\(.)", r"\1", name))
        if found is None:
            so_far = path[: step.end()]
            raise invalid_value(place, f"{path!r} is not in the schema: there is no {so_far}", _hint(schema))
        schema = found
    return schema


def column_type(schema: Schema) -> str:
    """Return the type of a printer column for a field with this schema."""
    if schema.get("format") == "date-time":
        return "date"
    kind = str(schema.get("type", "string"))
    return kind if kind in ("integer", "number", "boolean") else "string"


def _property(schema: Schema, name: str) -> Schema | None:
    if schema.get("type") not in (None, "object"):
        return None
    found: Schema | None = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
    return dict(_ANYTHING) if found is None and schema.get(PRESERVE) else found


def _items(schema: Schema) -> Schema | None:
    if schema.get("type") == "array":
        items: Schema = schema["items"]
        return items
    return dict(_ANYTHING) if schema.get(PRESERVE) else None


def _hint(schema: Schema) -> str:
    names = ", ".join(schema.get("properties", ()))
    return f"there are {names}" if names else f"the path ends at a field of type {schema.get('type', 'int-or-string')}"
