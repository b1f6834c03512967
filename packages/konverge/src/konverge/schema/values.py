"""Validate values against a schema, with the checks and the paths of the API server.

Only the server checks CEL rules, metadata, and the formats that `formats` leaves to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from konverge.schema.formats import has_format
from konverge.schema.patterns import matches
from konverge.schema.primitives import EXACTLY_ONE, FRACTIONS, Schema

__all__ = ["Violation", "find_violations"]

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
_INT64: Final = range(-(2**63), 2**63)


class Violation(Struct, frozen=True):
    """One reason why the server rejects a value: the wire path and a message."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.message}, at {self.path}"


def find_violations(schema: Schema, value: Any, path: str = "") -> list[Violation]:
    """Return every violation for which the server rejects the value; an empty list if it accepts the value.

    The value is plain JSON with defaults, as `defaults.prune_and_default` returns it.
    """
    return list(_violations(schema, value, path))


def _violations(schema: Schema, value: Any, path: str) -> Iterator[Violation]:
    wrong = _wrong_type(schema, value)
    if wrong:
        yield Violation(path or ".", wrong)
        return
    if "enum" in schema and not any(_same(value, choice) for choice in schema["enum"]):
        yield Violation(path, f"{_to_json(value)} is not one of {', '.join(map(_to_json, schema['enum']))}")
    if isinstance(value, str):
        yield from _text_violations(schema, value, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _number_violations(schema, value, path)
    elif isinstance(value, list):
        yield from _list_violations(schema, value, path)
    elif isinstance(value, dict):
        yield from _object_violations(schema, value, path)


def _wrong_type(schema: Schema, value: Any) -> str:
    if value is None and schema.get("nullable"):
        return ""
    if "x-kubernetes-int-or-string" in schema:
        expected, types = "integer or string", _TYPES["integer"] + _TYPES["string"]
    elif "type" in schema:
        expected, types = schema["type"], _TYPES[schema["type"]]
    else:
        return ""
    if isinstance(value, float) and expected.startswith("integer") and value.is_integer():
        return ""
    fits = isinstance(value, types) and (bool in types or not isinstance(value, bool))
    return "" if fits else f"expected {expected}, got {_NAMES.get(type(value), 'null')}"


def _text_violations(schema: Schema, value: str, path: str) -> Iterator[Violation]:
    yield from _size_violations(len(value), "characters", (schema.get("minLength"), schema.get("maxLength")), path)
    if "pattern" in schema and not matches(schema["pattern"], value):
        yield Violation(path, f"{_to_json(value)} does not match {schema['pattern']}")
    if "format" in schema and not has_format(schema["format"], value):
        yield Violation(path, f"{_to_json(value)} is not a valid {schema['format']}")


def _number_violations(schema: Schema, value: float, path: str) -> Iterator[Violation]:
    if isinstance(value, int) and value not in _INT64:
        yield Violation(path, f"{value} does not fit into 64 bits")
    yield from _bound_violations(schema, value, path)
    yield from _bound_violations(schema.get(FRACTIONS, {}), value, path)


def _bound_violations(schema: Schema, value: float, path: str) -> Iterator[Violation]:
    least, most, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if least is not None and (value < least or (value == least and schema.get("exclusiveMinimum"))):
        yield Violation(path, f"{value} is not {'above' if schema.get('exclusiveMinimum') else 'at least'} {least}")
    if most is not None and (value > most or (value == most and schema.get("exclusiveMaximum"))):
        yield Violation(path, f"{value} is not {'below' if schema.get('exclusiveMaximum') else 'at most'} {most}")
    if step is not None and not _is_multiple(value, step):
        yield Violation(path, f"{value} is not a multiple of {step}")


def _is_multiple(value: float, step: float) -> bool:
    if isinstance(value, int):
        return value % step == 0
    # The server divides doubles; above 2**53 it accepts none of them as an integer.
    ratio = value / step
    return ratio.is_integer() and abs(ratio) < 2**53


def _list_violations(schema: Schema, value: list[Any], path: str) -> Iterator[Violation]:
    yield from _size_violations(len(value), "items", (schema.get("minItems"), schema.get("maxItems")), path)
    items = schema.get("items", {})
    for place, item in enumerate(value):
        yield from _violations(items, item, f"{path}[{place}]")
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        yield from _duplicates(value, path)
    elif kind == "map":
        names = schema["x-kubernetes-list-map-keys"]
        keys = [
            {name: item[name] for name in names if name in item} if isinstance(item, dict) else {} for item in value
        ]
        yield from _duplicates(keys, path)


def _duplicates(keys: list[Any], path: str) -> Iterator[Violation]:
    seen: dict[str, int] = {}
    for place, key in enumerate(keys):
        text = json.dumps(key, sort_keys=True)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            yield Violation(f"{path}[{place}]", f"{_to_json(key)} is duplicated")


def _object_violations(schema: Schema, value: dict[str, Any], path: str) -> Iterator[Violation]:
    yield from _size_violations(len(value), "entries", (schema.get("minProperties"), schema.get("maxProperties")), path)
    properties: dict[str, Schema] = schema.get("properties", {})
    others: Schema | None = schema.get("additionalProperties")
    for key, item in value.items():
        part = properties.get(key, others)
        if part is not None:
            yield from _violations(part, item, f"{path}.{key}")
    for key in schema.get("required", ()):
        if key not in value:
            yield Violation(f"{path}.{key}", "a value is required")
    for names in schema.get(EXACTLY_ONE, ()):
        present = [name for name in names if name in value]
        if len(present) != 1:
            yield Violation(path, f"exactly one of {', '.join(names)} is required, got {', '.join(present) or 'none'}")
    if schema.get("x-kubernetes-embedded-resource"):
        yield from (
            Violation(f"{path}.{key}", "a value is required") for key in ("apiVersion", "kind") if not value.get(key)
        )


def _size_violations(size: int, unit: str, limits: tuple[int | None, int | None], path: str) -> Iterator[Violation]:
    least, most = limits
    if least is not None and size < least:
        yield Violation(path, f"{size} {unit} are fewer than {least}")
    if most is not None and size > most:
        yield Violation(path, f"{size} {unit} are more than {most}")


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _to_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
