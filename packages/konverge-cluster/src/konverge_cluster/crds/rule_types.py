"""What rules see of an object: types from its schema, bounds on sizes, and values made from JSON.

Fields keep their names where these are identifiers; others are escaped (`a-b` is `a__dash__b`), and a field whose name
cannot be escaped is not seen at all. Neither is what the schema leaves open.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from konverge_cluster.cel.parsing import RESERVED
from konverge_cluster.cel.times import read_date, read_duration, read_timestamp
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

__all__ = ["LARGEST_REQUEST", "Declared", "declare", "escape"]

LARGEST_REQUEST: Final = 3 * 1024 * 1024

_ESCAPED: Final = re.compile(r"__|[-./]")
_ALLOWED: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_WORDS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_TEXT: Final = Structural(type="string", raw={"type": "string"})

Convert = Callable[[Any], Any]


def escape(name: str) -> str:
    """The name of a field in rules, "" when it has none."""
    if name in RESERVED:
        return f"__{name}__"
    if not _ALLOWED.fullmatch(name):
        return ""
    return _ESCAPED.sub(lambda match: _WORDS[match[0]], name)


@dataclass(slots=True, eq=False)
class Declared:
    """A schema as rules see it.

    `most` is the largest size of a value, `least_bytes` the smallest number of bytes that it takes in a request. `make`
    turns JSON into a value for rules; None when the JSON is that value.
    """

    type: Type
    most: int = 0
    least_bytes: int = 0
    fields: Mapping[str, Declared] = field(default_factory=dict)
    element: Declared | None = None
    make: Convert | None = None

    def value(self, json: Any) -> Any:
        return json if self.make is None or json is None else self.make(json)

    def most_at(self, path: tuple[str, ...]) -> int | None:
        """The largest size of what is found under a path that starts with a variable of this type."""
        if not path:
            return None
        node: Declared = self
        for step in path[1:]:
            inner = node._inside(step)
            if inner is None:
                return None
            node = inner
        return node.most

    def _inside(self, step: str) -> Declared | None:
        if step == "@keys":
            return Declared(STRING) if self.type.kind == "map" else None
        return self.element if step in ("@items", "@values") else self.fields.get(step)


def declare(schema: Structural, *, is_resource: bool, name: str = "selfType") -> Declared | None:
    """Make the declaration of a schema; None when rules cannot see its values."""
    if schema.int_or_string:
        most = schema.raw.get("maxLength")
        return Declared(DYN, LARGEST_REQUEST - 2 if most is None else max(most, 0) * 4, 1)
    if is_resource:
        schema = _with_identity(schema)
    if schema.type == "array":
        return _declare_list(schema, name)
    if schema.type == "object":
        return _declare_map(schema, name) if schema.values is not None else _declare_object(schema, name)
    if schema.type == "string":
        return _declare_text(schema)
    return _plain(schema.type)


def _plain(kind: str) -> Declared | None:
    if kind == "boolean":
        return Declared(BOOL, 0, 4)
    if kind == "number":
        return Declared(DOUBLE, 0, 1, make=float)
    return Declared(INT, 0, 1) if kind == "integer" else None


def _with_identity(schema: Structural) -> Structural:
    metadata = Structural(type="object", properties={"name": _TEXT, "generateName": _TEXT})
    known = schema.properties.get("metadata")
    if known is not None and {"name", "generateName"} <= set(known.properties):
        metadata = known
    return replace(schema, properties={**schema.properties, "kind": _TEXT, "apiVersion": _TEXT, "metadata": metadata})


def _declare_list(schema: Structural, name: str) -> Declared | None:
    if schema.items is None:
        return None
    item = declare(schema.items, is_resource=schema.items.embedded, name=f"{name}.@idx")
    if item is None:
        return None
    most = schema.raw.get("maxItems")
    most = (LARGEST_REQUEST - 2) // (item.least_bytes + 1) if most is None else max(most, 0)
    return Declared(list_of(item.type), most, 2, element=item, make=_list_maker(schema, item))


def _list_maker(schema: Structural, item: Declared) -> Convert | None:
    make = item.make
    if schema.list_type == "set":
        return lambda json: SetList(json if make is None else map(item.value, json))
    if schema.list_type == "map":
        keys = tuple(escape(key) for key in schema.map_keys)
        return lambda json: MapList([item.value(each) for each in json], keys)
    return None if make is None else lambda json: [item.value(each) for each in json]


def _declare_map(schema: Structural, name: str) -> Declared | None:
    assert schema.values is not None
    value = declare(schema.values, is_resource=schema.values.embedded, name=f"{name}.@elem")
    if value is None:
        return None
    most = schema.raw.get("maxProperties")
    most = (LARGEST_REQUEST - 2) // (value.least_bytes + 6) if most is None else max(most, 0)
    make = None if value.make is None else lambda json: {key: value.value(each) for key, each in json.items()}
    return Declared(map_of(STRING, value.type), most, 2, element=value, make=make)


def _declare_object(schema: Structural, name: str) -> Declared:
    wanted = schema.raw.get("required") or ()
    fields: dict[str, Declared] = {}
    makers: dict[str, tuple[str, Convert | None]] = {}
    least = 2
    for key, each in schema.properties.items():
        escaped = escape(key)
        inner = declare(each, is_resource=each.embedded, name=f"{name}.{escaped}")
        if inner is None:
            continue
        if escaped:
            fields[escaped] = inner
            makers[key] = (escaped, inner.make)
        if key in wanted and each.default is None:
            least += len(key) + inner.least_bytes + 4
    kind = struct(name, {key: each.type for key, each in fields.items()})
    nullable = frozenset(key for key, each in schema.properties.items() if each.nullable)
    return Declared(kind, 0, least, fields=fields, make=_object_maker(makers, nullable))


def _object_maker(makers: Mapping[str, tuple[str, Convert | None]], nullable: frozenset[str]) -> Convert | None:
    """The conversion of an object: fields converted and renamed where needed; one that is null is not there."""
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


def _declare_text(schema: Structural) -> Declared:
    most = schema.raw.get("maxLength")
    if schema.format == "byte":
        return Declared(BYTES, LARGEST_REQUEST - 2 if most is None else max(most, 0), 2, make=base64.b64decode)
    if schema.format in _FORMATS:
        kind, size, least, read = _FORMATS[schema.format]
        return Declared(kind, size, least, make=_reader(read))
    if most is not None:
        return Declared(STRING, max(most, 0) * 4, 2)
    choices = schema.raw.get("enum")
    if choices:
        return Declared(STRING, max((len(each.encode()) for each in choices if isinstance(each, str)), default=0), 2)
    return Declared(STRING, LARGEST_REQUEST - 2, 2)


_FORMATS: Final[dict[str, tuple[Type, int, int, Callable[[str], Any]]]] = {
    "duration": (DURATION, 32, 3, read_duration),
    "date": (TIMESTAMP, 12, 12, read_date),
    "date-time": (TIMESTAMP, 32, 21, read_timestamp),
}


def _reader(read: Callable[[str], Any]) -> Convert:
    def make(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise EvaluationError(str(error)) from None

    return make
