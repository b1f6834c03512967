"""Values against a schema: the checks of the API server, made here, at the same paths.

What is not checked here, because only the server can: CEL rules, the formats that `formats` leaves to it, metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from konverge.schema.formats import has_format
from konverge.schema.leaves import EXACTLY_ONE, FRACTIONS, Schema
from konverge.schema.patterns import matches

__all__ = ["Problem", "problems_of"]

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


@dataclass(frozen=True)
class Problem:
    """One reason why the server refuses a value: the wire path, and what is wrong there."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.message}, at {self.path}"


def problems_of(schema: Schema, value: Any, path: str = "") -> list[Problem]:
    """Give every reason why the server refuses the value; an empty list when it takes it.

    The value is plain JSON with defaults filled in, as `defaults.filled` gives it.
    """
    return list(_problems(schema, value, path))


def _problems(schema: Schema, value: Any, path: str) -> Iterator[Problem]:
    wrong = _wrong_type(schema, value)
    if wrong:
        yield Problem(path or ".", wrong)
        return
    if "enum" in schema and not any(_same(value, choice) for choice in schema["enum"]):
        yield Problem(path, f"{_shown(value)} is not one of {', '.join(map(_shown, schema['enum']))}")
    if isinstance(value, str):
        yield from _text_problems(schema, value, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _number_problems(schema, value, path)
    elif isinstance(value, list):
        yield from _list_problems(schema, value, path)
    elif isinstance(value, dict):
        yield from _object_problems(schema, value, path)


def _wrong_type(schema: Schema, value: Any) -> str:
    if value is None and schema.get("nullable"):
        return ""
    if "x-kubernetes-int-or-string" in schema:
        wanted, types = "integer or string", _TYPES["integer"] + _TYPES["string"]
    elif "type" in schema:
        wanted, types = schema["type"], _TYPES[schema["type"]]
    else:
        return ""
    if isinstance(value, float) and wanted.startswith("integer") and value.is_integer():
        return ""
    fits = isinstance(value, types) and (bool in types or not isinstance(value, bool))
    return "" if fits else f"expected {wanted}, got {_NAMES.get(type(value), 'null')}"


def _text_problems(schema: Schema, value: str, path: str) -> Iterator[Problem]:
    yield from _size_problems(len(value), "characters", (schema.get("minLength"), schema.get("maxLength")), path)
    if "pattern" in schema and not matches(schema["pattern"], value):
        yield Problem(path, f"{_shown(value)} does not match {schema['pattern']}")
    if "format" in schema and not has_format(schema["format"], value):
        yield Problem(path, f"{_shown(value)} is no {schema['format']}")


def _number_problems(schema: Schema, value: float, path: str) -> Iterator[Problem]:
    if isinstance(value, int) and value not in _INT64:
        yield Problem(path, f"{value} does not fit into 64 bits")
    yield from _bound_problems(schema, value, path)
    yield from _bound_problems(schema.get(FRACTIONS, {}), value, path)


def _bound_problems(schema: Schema, value: float, path: str) -> Iterator[Problem]:
    least, most, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if least is not None and (value < least or (value == least and schema.get("exclusiveMinimum"))):
        yield Problem(path, f"{value} is not {'above' if schema.get('exclusiveMinimum') else 'at least'} {least}")
    if most is not None and (value > most or (value == most and schema.get("exclusiveMaximum"))):
        yield Problem(path, f"{value} is not {'below' if schema.get('exclusiveMaximum') else 'at most'} {most}")
    if step is not None and not _is_multiple(value, step):
        yield Problem(path, f"{value} is no multiple of {step}")


def _is_multiple(value: float, step: float) -> bool:
    if isinstance(value, int):
        return value % step == 0
    # The server divides doubles; beyond 2**53 it takes none of them for a whole number.
    ratio = value / step
    return ratio.is_integer() and abs(ratio) < 2**53


def _list_problems(schema: Schema, value: list[Any], path: str) -> Iterator[Problem]:
    yield from _size_problems(len(value), "items", (schema.get("minItems"), schema.get("maxItems")), path)
    items = schema.get("items", {})
    for place, item in enumerate(value):
        yield from _problems(items, item, f"{path}[{place}]")
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        yield from _duplicates(value, path)
    elif kind == "map":
        names = schema["x-kubernetes-list-map-keys"]
        keys = [
            {name: item[name] for name in names if name in item} if isinstance(item, dict) else {} for item in value
        ]
        yield from _duplicates(keys, path)


def _duplicates(keys: list[Any], path: str) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for place, key in enumerate(keys):
        text = json.dumps(key, sort_keys=True)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            yield Problem(f"{path}[{place}]", f"{_shown(key)} is there twice")


def _object_problems(schema: Schema, value: dict[str, Any], path: str) -> Iterator[Problem]:
    yield from _size_problems(len(value), "entries", (schema.get("minProperties"), schema.get("maxProperties")), path)
    properties: dict[str, Schema] = schema.get("properties", {})
    others: Schema | None = schema.get("additionalProperties")
    for key, item in value.items():
        part = properties.get(key, others)
        if part is not None:
            yield from _problems(part, item, f"{path}.{key}")
    for key in schema.get("required", ()):
        if key not in value:
            yield Problem(f"{path}.{key}", "a value is required")
    for names in schema.get(EXACTLY_ONE, ()):
        given = [name for name in names if name in value]
        if len(given) != 1:
            yield Problem(path, f"exactly one of {', '.join(names)} is wanted, got {', '.join(given) or 'none'}")
    if schema.get("x-kubernetes-embedded-resource"):
        yield from (
            Problem(f"{path}.{key}", "a value is required") for key in ("apiVersion", "kind") if not value.get(key)
        )


def _size_problems(size: int, of_what: str, limits: tuple[int | None, int | None], path: str) -> Iterator[Problem]:
    least, most = limits
    if least is not None and size < least:
        yield Problem(path, f"{size} {of_what} are fewer than {least}")
    if most is not None and size > most:
        yield Problem(path, f"{size} {of_what} are more than {most}")


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
