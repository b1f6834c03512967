"""Apply `Meta` and the markers of an annotation to a schema, and refuse those that do not fit the type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from konverge.objects.codec import to_wire
from konverge.objects.durations import Duration
from konverge.objects.quantities import Quantity
from konverge.schema.markers import (
    Atomic,
    Default,
    EmbeddedResource,
    Format,
    ListMap,
    ListSet,
    Meta,
    Nullable,
    PreserveUnknown,
    Rule,
)
from konverge.schema.patterns import check_pattern
from konverge.schema.primitives import FRACTIONS, PRESERVE, PRIMITIVES, Schema
from konverge.schema.schema_errors import invalid_value, unsupported_type

__all__ = ["constrain", "schema_type"]

_RULES: Final = "x-kubernetes-validations"
_BOUNDS: Final = {
    "ge": ("minimum", "", ">="),
    "gt": ("minimum", "exclusiveMinimum", ">"),
    "le": ("maximum", "", "<="),
    "lt": ("maximum", "exclusiveMaximum", "<"),
    "multiple_of": ("multipleOf", "", ""),
}
_LENGTHS: Final = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_LIST_KEYS: Final = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys")
_EXACT_IN_A_DOUBLE: Final = 2**53


def schema_type(schema: Schema) -> str:
    """Return the type of a schema, "int-or-string", or "any value" if it has no type."""
    if "x-kubernetes-int-or-string" in schema:
        return "int-or-string"
    return str(schema.get("type", "any value"))


def constrain(schema: Schema, markers: Iterable[Any], path: str) -> Schema:
    """Return the schema with all markers of an annotation applied; unknown metadata is ignored.

    Raises: TypeError or ValueError for a marker that does not fit the type.
    """
    for marker in markers:
        match marker:
            case Meta():
                schema = {**schema, **_from_meta(marker, schema, path)}
            case Rule():
                schema = {**schema, _RULES: [*schema.get(_RULES, ()), marker.to_wire()]}
            case ListMap() | ListSet() | Atomic() if schema_type(schema) == "array":
                # The last marker wins: a list of conditions is a map by default, and a marker can change that.
                schema = {key: value for key, value in schema.items() if key not in _LIST_KEYS}
                schema |= _from_marker(marker, schema, path)
            case _:
                schema = {**schema, **_from_marker(marker, schema, path)}
    return schema


def _from_marker(marker: Any, schema: Schema, path: str) -> Schema:
    type_name = schema_type(schema)
    match marker:
        case Nullable():
            return {"nullable": True}
        case Default():
            return {"default": to_wire(marker.value)}
        case Format():
            _require_type(marker, type_name, "string", path)
            if "format" in schema or "enum" in schema:
                raise unsupported_type(path, "this type has its own format", "remove Format, or write str")
            return {"format": marker.name}
        case ListSet():
            _require_type(marker, type_name, "array", path)
            return {"x-kubernetes-list-type": "set"}
        case ListMap():
            _require_type(marker, type_name, "array", path)
            return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(marker.keys)}
        case Atomic() if type_name == "array":
            return {"x-kubernetes-list-type": "atomic"}
        case Atomic():
            _require_type(marker, type_name, "object", path)
            return {"x-kubernetes-map-type": "atomic"}
        case PreserveUnknown():
            _require_open_object(marker, schema, path)
            return {PRESERVE: True}
        case EmbeddedResource():
            _require_open_object(marker, schema, path)
            return {"x-kubernetes-embedded-resource": True}
    return {}


def _require_type(marker: Any, type_name: str, required: str, path: str) -> None:
    if type_name != required:
        name = type(marker).__name__
        raise unsupported_type(path, f"{name} applies to type {required}, not to {type_name}", f"remove {name}")


def _require_open_object(marker: Any, schema: Schema, path: str) -> None:
    _require_type(marker, schema_type(schema), "object", path)
    if "additionalProperties" in schema:
        what = f"{type(marker).__name__} is for structs and dict[str, Any]: the values of this map have a type"
        raise unsupported_type(path, what, "write dict[str, Any]")


def _from_meta(meta: Meta, schema: Schema, path: str) -> Schema:
    added: Schema = {}
    if meta.title is not None:
        added["title"] = meta.title
    if meta.description is not None:
        added["description"] = meta.description
    if meta.examples:
        added["example"] = to_wire(meta.examples[0])
    added |= _bounds(meta, schema, path)
    if meta.pattern is not None:
        added["pattern"] = _pattern(meta.pattern, schema, path)
    if meta.min_length is not None or meta.max_length is not None:
        added |= _lengths(meta, schema, path)
    return {**added, **(meta.extra_json_schema or {})}


def _bounds(meta: Meta, schema: Schema, path: str) -> Schema:
    whole: Schema = {}
    fractions: Schema = {}
    rules = []
    for name, (keyword, exclusive, operator) in _BOUNDS.items():
        bound = getattr(meta, name)
        if bound is None:
            continue
        _check_bound(name, bound, schema, path)
        added = {keyword: bound, exclusive: True} if exclusive else {keyword: bound}
        if bound == int(bound):
            whole |= added
        else:
            # The server truncates a bound to an integer when it compares an integer with it; CEL does not.
            fractions |= added
            rules.append(Rule(f"self {operator} {bound}", message=f"should be {operator} {bound}").to_wire())
    _check_order({**whole, **fractions}, path)
    return {**whole, FRACTIONS: fractions, _RULES: [*schema.get(_RULES, ()), *rules]} if rules else whole


def _check_order(bounds: Schema, path: str) -> None:
    least, most = bounds.get("minimum"), bounds.get("maximum")
    if least is not None and most is not None and least > most:
        raise invalid_value(path, f"no number is between {least} and {most}", "swap the bounds")


def _check_bound(name: str, bound: Any, schema: Schema, path: str) -> None:
    type_name = schema_type(schema)
    if type_name not in ("integer", "number", "int-or-string") or _has_own_pattern(schema):
        raise unsupported_type(path, f"{name}={bound} applies to numbers, not to {type_name}", "write a Rule")
    if type_name != "number" and not (isinstance(bound, int) and abs(bound) <= _EXACT_IN_A_DOUBLE):
        raise invalid_value(path, f"{name}={bound} is not exact on the server", "write an integer within 2**53")
    if name == "multiple_of" and bound != int(bound):
        what = f"the server cannot compute which integers are multiples of {bound}"
        raise invalid_value(path, what, "write a Rule, or count in a smaller unit")


def _has_own_pattern(schema: Schema) -> bool:
    """Report whether the type is defined by a pattern: a Quantity or a Duration."""
    return any(
        schema.get("pattern") == primitive.get("pattern") for primitive in (PRIMITIVES[Quantity], PRIMITIVES[Duration])
    )


def _pattern(pattern: str, schema: Schema, path: str) -> str:
    type_name = schema_type(schema)
    if type_name not in ("string", "int-or-string") or _has_own_pattern(schema):
        raise unsupported_type(path, f"a pattern does not fit {type_name} here", "write a Rule")
    try:
        check_pattern(pattern)
    except ValueError as error:
        raise invalid_value(path, f"the server rejects the pattern {pattern!r}", str(error)) from error
    return pattern


def _lengths(meta: Meta, schema: Schema, path: str) -> Schema:
    type_name = schema_type(schema)
    if type_name == "int-or-string" and not _has_own_pattern(schema):
        type_name = "string"
    if type_name not in _LENGTHS or schema.get("format") == "byte" or "properties" in schema:
        suggestion = "write a Rule" if schema.get("format") != "byte" else "the server would count base64 characters"
        raise unsupported_type(path, "a length does not fit this type", suggestion)
    least, most = _LENGTHS[type_name]
    if meta.min_length is not None and meta.max_length is not None and meta.min_length > meta.max_length:
        what = f"min_length={meta.min_length} is greater than max_length={meta.max_length}"
        raise invalid_value(path, what, "swap them")
    limits = {least: meta.min_length, most: meta.max_length}
    return {key: value for key, value in limits.items() if value is not None}
