"""Bodies in protobuf, which kubectl and Go clients send for built-in kinds, read as the JSON that would say the same.

A body is four bytes of magic and an envelope: the kind, and the object as a message. The numbers of fields
(data/builtin-protobuf.json.gz) stand beside the table of Go structs that `structs` reads. Rules:

1. What comes out is what Go would write as JSON: texts, numbers and switches that are empty are left out where Go
   leaves them out. A pointer that is set keeps its zero.
2. Fields with unknown numbers are skipped; what is not protobuf, or not of the type of its field, is refused.
3. Of a kind that is not read here only the name comes out: whoever is asked for another kind says so.
4. Only requests come in protobuf. Answers are JSON, which every client that sends protobuf takes too.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from konverge_cluster.api.bodies import BadObject, BadText, read_json
from konverge_cluster.builtins.data import load

__all__ = ["read_protobuf"]

_MAGIC: Final = b"k8s\x00"
_EPOCH: Final = datetime(1970, 1, 1)
_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
# Schemas have messages of their own for what may be of two types.
_DEFINITIONS: Final = "apiextensions.k8s.io/"
_OPTIONS: Final = "DeleteOptions"

Raw = int | bytes


@dataclass(frozen=True, slots=True)
class _Field:
    """One field: its key in JSON, how one value is read, how values are kept, whether Go leaves out an empty one."""

    key: str
    read: Callable[[Raw], Any]
    keep: str
    drops_empty: bool


Tree = dict[int, "_Field | Tree"]
"""Fields by number; a tree inside stands for a message whose fields JSON has one level higher."""


def read_protobuf(body: bytes, api_version: str, kind: str) -> dict[str, Any]:
    """Read an object of a built-in kind, or options of a deletion; the kind is this one where none is said.

    Raises: BadText when the envelope cannot be read; BadObject when the object in it cannot.
    """
    if not body:
        raise BadText("empty data")
    if not body.startswith(_MAGIC):
        prefix = " ".join(map(str, _MAGIC))
        raise BadText(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    if body == _MAGIC:
        raise BadText("empty body")
    envelope = dict(_parts(body[len(_MAGIC) :]))
    identity = dict(_parts(_octets(envelope.get(1, b""))))
    api_version = _text(identity.get(1, b"")) or api_version
    kind = _text(identity.get(2, b"")) or kind
    if api_version.startswith(_DEFINITIONS):
        raise BadObject("it is read as JSON or YAML only", kind, api_version)
    index = _index_of(api_version, kind)
    try:
        found = {} if index is None else _read_struct(index, _octets(envelope.get(2, b"")))
    except BadText as fault:
        raise BadObject(str(fault), kind, api_version) from None
    return {"apiVersion": api_version, "kind": kind, **found}


def _parts(data: bytes) -> Iterator[tuple[int, Raw]]:
    """The fields of a message: number and value, in the order in which they come."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_DOUBLE, _FLOAT):
            size = 8 if wire == _DOUBLE else 4
        else:
            raise BadText(f"proto: illegal wireType {wire}")
        if at + size > len(data):
            raise BadText("unexpected EOF")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise BadText("unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
    raise BadText("proto: integer overflow")


class _WrongType(BadText):
    """A value of another wire type than the field has."""


def _octets(raw: Raw) -> bytes:
    if isinstance(raw, int):
        raise _WrongType(f"proto: wrong wireType = {_VARINT}")
    return raw


def _number(raw: Raw) -> int:
    if not isinstance(raw, int):
        raise _WrongType(f"proto: wrong wireType = {_BYTES}")
    return raw - 2**64 if raw >= 2**63 else raw


def _text(raw: Raw) -> str:
    # Go keeps bytes that are no UTF-8 and replaces them when it writes JSON.
    return _octets(raw).decode("utf-8", "replace")


def _base64(raw: Raw) -> str:
    return base64.b64encode(_octets(raw)).decode()


def _time(raw: Raw, precision: str = "seconds") -> str | None:
    if not _octets(raw):
        return None
    inside = dict(_parts(_octets(raw)))
    micros = _number(inside.get(2, 0)) // 1000 if precision == "microseconds" else 0
    try:
        moment = _EPOCH + timedelta(seconds=_number(inside.get(1, 0)), microseconds=micros)
    except OverflowError:
        raise BadText("a time that is out of range") from None
    return f"{moment.isoformat(timespec=precision)}Z"


def _micro_time(raw: Raw) -> str | None:
    return _time(raw, "microseconds")


def _int_or_string(raw: Raw) -> int | str:
    inside = dict(_parts(_octets(raw)))
    return _text(inside.get(3, b"")) if inside.get(1, 0) else _number(inside.get(2, 0))


def _quantity(raw: Raw) -> str:
    return _text(dict(_parts(_octets(raw))).get(1, b"")) or "0"


def _embedded_json(raw: Raw) -> Any:
    text = _octets(dict(_parts(_octets(raw))).get(1, b""))
    return read_json(text)[0] if text else None


def _items(raw: Raw) -> list[str]:
    return [_text(value) for number, value in _parts(_octets(raw)) if number == 1]


_READERS: Final[dict[str, Callable[[Raw], Any]]] = {
    "string": _text,
    "bool": lambda raw: bool(_number(raw)),
    "int32": _number,
    "int64": _number,
    "bytes": _base64,
    "v1.Time": _time,
    "v1.MicroTime": _micro_time,
    "intstr.IntOrString": _int_or_string,
    "resource.Quantity": _quantity,
    "v1.FieldsV1": _embedded_json,
    "runtime.RawExtension": _embedded_json,
    "v1.ExtraValue": _items,
}


@cache
def _shapes() -> tuple[Any, Any]:
    return load("structs"), load("protobuf")


@cache
def _index_of(api_version: str, kind: str) -> int | None:
    table = _shapes()[0]
    if kind == _OPTIONS:
        return next(index for index, shape in enumerate(table["shapes"]) if shape["name"] == f"v1.{_OPTIONS}")
    found: int | None = table["kinds"].get(f"{api_version}/{kind}")
    return found


def _read_struct(index: int, data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    _fill(found, _tree(index), data)
    return found


def _fill(found: dict[str, Any], tree: Tree, data: bytes) -> None:
    for number, raw in _parts(data):
        field = tree.get(number)
        if isinstance(field, dict):
            _fill(found, field, _octets(raw))
        elif field is not None:
            try:
                _put(found, field, raw)
            except _WrongType as fault:
                raise BadText(f"{fault} for field {field.key[0].upper()}{field.key[1:]}") from None


def _put(found: dict[str, Any], field: _Field, raw: Raw) -> None:
    if field.keep == "map":
        entry = dict(_parts(_octets(raw)))
        found.setdefault(field.key, {})[_text(entry.get(1, b""))] = field.read(entry.get(2, b""))
        return
    value = field.read(raw)
    if field.keep == "list":
        found.setdefault(field.key, []).append(value)
    elif value is not None and (value or not field.drops_empty):
        found[field.key] = value


@cache
def _tree(index: int) -> Tree:
    table, numbers = _shapes()
    tree: Tree = {}
    for field, way in zip(table["shapes"][index].get("fields", ()), numbers[index], strict=True):
        inner = tree
        for number in way[:-1]:
            below = inner.setdefault(number, {})
            assert isinstance(below, dict)
            inner = below
        if way:
            inner[way[-1]] = _field(field)
    return tree


def _field(field: Any) -> _Field:
    shapes = _shapes()[0]["shapes"]
    shape = shapes[field["shape"]]
    kind = shape["kind"]
    keep = kind if kind in ("list", "map") else ""
    read = _reader(shape["element"] if keep else field["shape"])
    drops_empty = field.get("omitEmpty", False) and kind not in ("pointer", "struct", "special")
    return _Field(field["key"], read, keep, drops_empty)


@cache
def _reader(index: int) -> Callable[[Raw], Any]:
    shape = _shapes()[0]["shapes"][index]
    kind, name = shape["kind"], shape["name"]
    if kind == "pointer":
        return _reader(shape["element"])
    if kind == "struct":
        return lambda raw: _read_struct(index, _octets(raw))
    return _READERS[name if name in _READERS else kind]
