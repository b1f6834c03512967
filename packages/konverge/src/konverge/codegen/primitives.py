"""The Python types of primitive schemas: strings, numbers, times, and free-form values."""

from __future__ import annotations

from typing import Any

from konverge.codegen.shapes import TypeShape

__all__ = ["ANY", "DATETIME", "INT_OR_STRING", "MICRO_TIME", "OBJECT", "QUANTITY", "primitive_type"]

ANY = TypeShape("Any", frozenset({("typing", "Any")}))
OBJECT = ANY.in_map()
DATETIME = TypeShape("datetime", frozenset({("datetime", "datetime")}))
INT_OR_STRING = TypeShape("int | str")
MICRO_TIME = TypeShape("MicroTime", frozenset({("konverge.objects.times", "MicroTime")}))
QUANTITY = TypeShape("Quantity", frozenset({("konverge.objects.quantities", "Quantity")}))

_STRINGS = {"byte": TypeShape("bytes"), "date-time": DATETIME, "int-or-string": INT_OR_STRING}
_PRIMITIVES = {"boolean": TypeShape("bool"), "integer": TypeShape("int"), "number": TypeShape("float")}


def primitive_type(schema: dict[str, Any]) -> TypeShape | None:
    """Return the type of a primitive schema; None for objects, lists and schemas without a type."""
    if schema.get("format") == "int-or-string":
        return INT_OR_STRING
    if schema.get("type") == "string":
        return _STRINGS.get(str(schema.get("format")), TypeShape("str"))
    return _PRIMITIVES.get(str(schema.get("type")))
