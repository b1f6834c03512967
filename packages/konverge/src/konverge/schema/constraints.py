"""`Meta` and the markers, written into a schema where they fit and refused where they do not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from konverge.objects.codec import to_wire
from konverge.objects.durations import Duration
from konverge.objects.quantities import Quantity
from konverge.schema.leaves import FRACTIONS, LEAVES, PRESERVE, Schema
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
from konverge.schema.refusals import refused_type, refused_value

__all__ = ["constrain", "family_of"]

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


def family_of(schema: Schema) -> str:
    """Name what a schema describes, for messages and for telling what fits: its type, or what it has instead."""
    if "x-kubernetes-int-or-string" in schema:
        return "int-or-string"
    return str(schema.get("type", "any value"))


def constrain(schema: Schema, notes: Iterable[Any], path: str) -> Schema:
    """Return the schema with all notes of an annotation worked in; notes that are not ours are passed over.

    Raises: TypeError or ValueError for a note that does not fit the type.
    """
    for note in notes:
        match note:
            case Meta():
                schema = {**schema, **_from_meta(note, schema, path)}
            case Rule():
                schema = {**schema, _RULES: [*schema.get(_RULES, ()), note.to_wire()]}
            case ListMap() | ListSet() | Atomic() if family_of(schema) == "array":
                # The last word counts: a list of conditions is a map by itself, and may be said to be something else.
                schema = {key: value for key, value in schema.items() if key not in _LIST_KEYS}
                schema |= _from_marker(note, schema, path)
            case _:
                schema = {**schema, **_from_marker(note, schema, path)}
    return schema


def _from_marker(note: Any, schema: Schema, path: str) -> Schema:
    family = family_of(schema)
    match note:
        case Nullable():
            return {"nullable": True}
        case Default():
            return {"default": to_wire(note.value)}
        case Format():
            _needs(note, family, "string", path)
            if "format" in schema or "enum" in schema:
                raise refused_type(path, "this type has its own format", "take Format off, or write str")
            return {"format": note.name}
        case ListSet():
            _needs(note, family, "array", path)
            return {"x-kubernetes-list-type": "set"}
        case ListMap():
            _needs(note, family, "array", path)
            return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(note.keys)}
        case Atomic() if family == "array":
            return {"x-kubernetes-list-type": "atomic"}
        case Atomic():
            _needs(note, family, "object", path)
            return {"x-kubernetes-map-type": "atomic"}
        case PreserveUnknown():
            _needs_room(note, schema, path)
            return {PRESERVE: True}
        case EmbeddedResource():
            _needs_room(note, schema, path)
            return {"x-kubernetes-embedded-resource": True}
    return {}


def _needs(note: Any, family: str, wanted: str, path: str) -> None:
    if family != wanted:
        name = type(note).__name__
        raise refused_type(path, f"{name} says something about type {wanted}, not {family}", f"take {name} off")


def _needs_room(note: Any, schema: Schema, path: str) -> None:
    _needs(note, family_of(schema), "object", path)
    if "additionalProperties" in schema:
        what = f"{type(note).__name__} is for structs and dict[str, Any]: the values of this map have a type"
        raise refused_type(path, what, "write dict[str, Any]")


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
            # The server cuts a bound to a whole number when it compares a whole number with it; CEL does not.
            fractions |= added
            rules.append(Rule(f"self {operator} {bound}", message=f"should be {operator} {bound}").to_wire())
    _check_order({**whole, **fractions}, path)
    return {**whole, FRACTIONS: fractions, _RULES: [*schema.get(_RULES, ()), *rules]} if rules else whole


def _check_order(bounds: Schema, path: str) -> None:
    least, most = bounds.get("minimum"), bounds.get("maximum")
    if least is not None and most is not None and least > most:
        raise refused_value(path, f"no number lies between {least} and {most}", "swap the bounds")


def _check_bound(name: str, bound: Any, schema: Schema, path: str) -> None:
    family = family_of(schema)
    if family not in ("integer", "number", "int-or-string") or _has_own_pattern(schema):
        raise refused_type(path, f"{name}={bound} bounds a number, and this is {family}", "write a Rule")
    if family != "number" and not (isinstance(bound, int) and abs(bound) <= _EXACT_IN_A_DOUBLE):
        raise refused_value(path, f"{name}={bound} is not exact on the server", "write a whole number within 2**53")
    if name == "multiple_of" and bound != int(bound):
        what = f"the server cannot tell which whole numbers are multiples of {bound}"
        raise refused_value(path, what, "write a Rule, or count in a smaller unit")


def _has_own_pattern(schema: Schema) -> bool:
    """Tell whether this is a type that is one by its pattern: a Quantity or a Duration."""
    return any(schema.get("pattern") == leaf.get("pattern") for leaf in (LEAVES[Quantity], LEAVES[Duration]))


def _pattern(pattern: str, schema: Schema, path: str) -> str:
    family = family_of(schema)
    if family not in ("string", "int-or-string") or _has_own_pattern(schema):
        raise refused_type(path, f"a pattern does not fit {family} here", "write a Rule")
    try:
        check_pattern(pattern)
    except ValueError as error:
        raise refused_value(path, f"the pattern {pattern!r} is not one for the server", str(error)) from error
    return pattern


def _lengths(meta: Meta, schema: Schema, path: str) -> Schema:
    family = family_of(schema)
    if family == "int-or-string" and not _has_own_pattern(schema):
        family = "string"
    if family not in _LENGTHS or schema.get("format") == "byte" or "properties" in schema:
        instead = "write a Rule" if schema.get("format") != "byte" else "the server would count base64 characters"
        raise refused_type(path, "a length does not fit this type", instead)
    least, most = _LENGTHS[family]
    if meta.min_length is not None and meta.max_length is not None and meta.min_length > meta.max_length:
        raise refused_value(path, f"min_length={meta.min_length} is above max_length={meta.max_length}", "swap them")
    found = {least: meta.min_length, most: meta.max_length}
    return {key: value for key, value in found.items() if value is not None}
