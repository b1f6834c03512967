"""Schemas without structure as Python types: texts, numbers, times, and what no class can describe."""

from __future__ import annotations

from typing import Any

from konverge.codegen.shapes import TypeShape

__all__ = ["ANY", "DATETIME", "INT_OR_STRING", "MICRO_TIME", "OBJECT", "QUANTITY", "scalar"]

ANY = TypeShape("Any", frozenset({("typing", "Any")}))
OBJECT = ANY.in_map()
DATETIME = TypeShape("datetime", frozenset({("datetime", "datetime")}))
INT_OR_STRING = TypeShape("int | str")
MICRO_TIME = TypeShape("MicroTime", frozenset({("konverge.objects.times", "MicroTime")}))
QUANTITY = TypeShape("Quantity", frozenset({("konverge.objects.quantities", "Quantity")}))

_STRINGS = {"byte": TypeShape("bytes"), "date-time": DATETIME, "int-or-string": INT_OR_STRING}
_SCALARS = {"boolean": TypeShape("bool"), "integer": TypeShape("int"), "number": TypeShape("float")}


def scalar(schema: dict[str, Any]) -> TypeShape | None:
    """Give the type of a scalar schema; None for objects, lists and what has no type."""
    if schema.get("format") == "int-or-string":
        return INT_OR_STRING
    if schema.get("type") == "string":
        return _STRINGS.get(str(schema.get("format")), TypeShape("str"))
    return _SCALARS.get(str(schema.get("type")))
