"""CEL types of a schema, size bounds, and conversion of JSON to CEL values.

Field names that are identifiers are kept; others are escaped (`a-b` is `a__dash__b`). A field whose name
cannot be escaped is not visible to rules. Neither are fields that the schema does not specify.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from konverge_cluster.cel.parser import RESERVED
from konverge_cluster.cel.times import parse_date, parse_duration, parse_timestamp
from konverge_cluster.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    struct,
)
from konverge_cluster.cel.values import EvaluationError, MapList, SetList
from konverge_cluster.crds.structural import Structural

__all__ = ["LARGEST_REQUEST", "Declaration", "escape", "to_declaration"]

LARGEST_REQUEST: Final = 3 * 1024 * 1024

_ESCAPED: Final = re.compile(r"__|[-./]")
_ALLOWED: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_WORDS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_TEXT: Final = Structural(type="string", raw={"type": "string"})

Convert = Callable[[Any], Any]


def escape(name: str) -> str:
    """Return the name of a field in rules, "" if it has none."""
    if name in RESERVED:
        return f"__{name}__"
    if not _ALLOWED.fullmatch(name):
        return ""
    return _ESCAPED.sub(lambda match: _WORDS[match[0]], name)


@dataclass(slots=True, eq=False)
class Declaration:
    """The CEL declaration of a schema.

    `max_size` is the maximum size of a value, `min_bytes` the minimum number of bytes of a value in a request. `make`
    converts JSON to a CEL value; None if no conversion is needed.
    """

    type: Type
    max_size: int = 0
    min_bytes: int = 0
    fields: Mapping[str, Declaration] = field(default_factory=dict)
    element: Declaration | None = None
    make: Convert | None = None

    def value(self, json: Any) -> Any:
        return json if self.make is None or json is None else self.make(json)

    def max_size_at(self, path: tuple[str, ...]) -> int | None:
        """Return the maximum size of the value under a path that starts with a variable of this type."""
        if not path:
            return None
        node: Declaration = self
        for step in path[1:]:
            inner = node._inside(step)
            if inner is None:
                return None
            node = inner
        return node.max_size

    def _inside(self, step: str) -> Declaration | None:
        if step == "@keys":
            return Declaration(STRING) if self.type.kind == "map" else None
        return self.element if step in ("@items", "@values") else self.fields.get(step)


def to_declaration(schema: Structural, *, is_resource: bool, name: str = "selfType") -> Declaration | None:
    """Return the declaration of a schema; None if rules cannot access its values."""
    if schema.int_or_string:
        max_size = schema.raw.get("maxLength")
        return Declaration(DYN, LARGEST_REQUEST - 2 if max_size is None else max(max_size, 0) * 4, 1)
    if is_resource:
        schema = _with_identity(schema)
    if schema.type == "array":
        return _declare_list(schema, name)
    if schema.type == "object":
        return _declare_map(schema, name) if schema.values is not None else _declare_object(schema, name)
    if schema.type == "string":
        return _declare_text(schema)
    return _plain(schema.type)


def _plain(kind: str) -> Declaration | None:
    if kind == "boolean":
        return Declaration(BOOL, 0, 4)
    if kind == "number":
        return Declaration(DOUBLE, 0, 1, make=float)
    return Declaration(INT, 0, 1) if kind == "integer" else None


def _with_identity(schema: Structural) -> Structural:
    metadata = Structural(type="object", properties={"name": _TEXT, "generateName": _TEXT})
    known = schema.properties.get("metadata")
    if known is not None and {"name", "generateName"} <= set(known.properties):
        metadata = known
    return replace(schema, properties={**schema.properties, "kind": _TEXT, "apiVersion": _TEXT, "metadata": metadata})


def _declare_list(schema: Structural, name: str) -> Declaration | None:
    if schema.items is None:
        return None
    item = to_declaration(schema.items, is_resource=schema.items.embedded, name=f"{name}.@idx")
    if item is None:
        return None
    max_size = schema.raw.get("maxItems")
    max_size = (LARGEST_REQUEST - 2) // (item.min_bytes + 1) if max_size is None else max(max_size, 0)
    return Declaration(list_of(item.type), max_size, 2, element=item, make=_list_maker(schema, item))


def _list_maker(schema: Structural, item: Declaration) -> Convert | None:
    make = item.make
    if schema.list_type == "set":
        return lambda json: SetList(json if make is None else map(item.value, json))
    if schema.list_type == "map":
        keys = tuple(escape(key) for key in schema.map_keys)
        return lambda json: MapList([item.value(each) for each in json], keys)
    return None if make is None else lambda json: [item.value(each) for each in json]


def _declare_map(schema: Structural, name: str) -> Declaration | None:
    assert schema.values is not None
    value = to_declaration(schema.values, is_resource=schema.values.embedded, name=f"{name}.@elem")
    if value is None:
        return None
    max_size = schema.raw.get("maxProperties")
    max_size = (LARGEST_REQUEST - 2) // (value.min_bytes + 6) if max_size is None else max(max_size, 0)
    make = None if value.make is None else lambda json: {key: value.value(each) for key, each in json.items()}
    return Declaration(map_of(STRING, value.type), max_size, 2, element=value, make=make)


def _declare_object(schema: Structural, name: str) -> Declaration:
    required = schema.raw.get("required") or ()
    fields: dict[str, Declaration] = {}
    makers: dict[str, tuple[str, Convert | None]] = {}
    minimum = 2
    for key, each in schema.properties.items():
        escaped = escape(key)
        inner = to_declaration(each, is_resource=each.embedded, name=f"{name}.{escaped}")
        if inner is None:
            continue
        if escaped:
            fields[escaped] = inner
            makers[key] = (escaped, inner.make)
        if key in required and each.default is None:
            minimum += len(key) + inner.min_bytes + 4
    kind = struct(name, {key: each.type for key, each in fields.items()})
    nullable = frozenset(key for key, each in schema.properties.items() if each.nullable)
    return Declaration(kind, 0, minimum, fields=fields, make=_object_maker(makers, nullable))


def _object_maker(makers: Mapping[str, tuple[str, Convert | None]], nullable: frozenset[str]) -> Convert | None:
    """Return the conversion of an object: fields are converted and renamed where needed, nulls are dropped."""
    changed = {key: each for key, each in makers.items() if each[1] is not None or each[0] != key or key in nullable}
    if not changed:
        return None

    def make(json: dict[str, Any]) -> dict[str, Any]:
        made = dict(json)
        for key, (escaped, convert) in changed.items():
            value = made.pop(key, None)
            if value is not None:
                made[escaped] = value if convert is None else convert(value)
        return made

    return make


def _declare_text(schema: Structural) -> Declaration:
    max_size = schema.raw.get("maxLength")
    if schema.format == "byte":
        return Declaration(
            BYTES, LARGEST_REQUEST - 2 if max_size is None else max(max_size, 0), 2, make=base64.b64decode
        )
    if schema.format in _FORMATS:
        kind, size, minimum, read = _FORMATS[schema.format]
        return Declaration(kind, size, minimum, make=_reader(read))
    if max_size is not None:
        return Declaration(STRING, max(max_size, 0) * 4, 2)
    choices = schema.raw.get("enum")
    if choices:
        return Declaration(STRING, max((len(each.encode()) for each in choices if isinstance(each, str)), default=0), 2)
    return Declaration(STRING, LARGEST_REQUEST - 2, 2)


_FORMATS: Final[dict[str, tuple[Type, int, int, Callable[[str], Any]]]] = {
    "duration": (DURATION, 32, 3, parse_duration),
    "date": (TIMESTAMP, 12, 12, parse_date),
    "date-time": (TIMESTAMP, 32, 21, parse_timestamp),
}


def _reader(read: Callable[[str], Any]) -> Convert:
    def make(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise EvaluationError(str(error)) from None

    return make
