"""Decode JSON documents as the Go structs of the built-in kinds do, from a table of their fields.

The table (data/builtin-structs.json.gz) contains what Go's reflection reports about Kubernetes' types. The decoder of a
struct is built on first use. It changes a document in place into what Go would print after decoding it:

1. A key that the struct does not have is removed, and its path is reported.
2. Nulls, empty lists and empty maps are removed, and so are empty values of `omitempty` fields. Pointers keep their
   zero.
3. A missing field that is always printed is added: `{}` for a struct, null for a list, "" for a string.
4. A value of the wrong type raises `UnmarshalError` with Go's text.

Keys keep their order: documents are compared as values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from konverge_cluster.builtins.data import load
from konverge_cluster.builtins.scalars import (
    Reader,
    float_reader,
    int_reader,
    plain_reader,
    read_bytes,
    special_reader,
)
from konverge_cluster.builtins.unmarshal_errors import UnmarshalError, UnmarshalTypeError, json_type

__all__ = ["kind_decoder", "struct_decoder", "zero_value"]

Decoder = Callable[[Any, list[str]], Any]
"""Decodes a value, in place where possible, and appends the paths of unknown fields to the list."""

_PLAIN: Final = {"string": str, "bool": bool}
_ZEROS: Final[dict[str, Any]] = {"bytes": "", "string": "", "bool": False, "int64": 0, "int32": 0, "float64": 0}
_SPECIAL_ZEROS: Final[dict[str, Any]] = {"resource.Quantity": "0", "intstr.IntOrString": 0}
_SCHEMA_TYPES: Final = {"v1.JSONSchemaPropsOrArray": list, "v1.JSONSchemaPropsOrStringArray": list}
_SCHEMA_OR_BOOL: Final = "v1.JSONSchemaPropsOrBool"
_COMMON_FIELDS: Final = ("kind", "apiVersion", "metadata")


class _Field(NamedTuple):
    """A field: the Python type that needs no decoding, the decoder, whether empty values stay, and its keys."""

    plain: type | None
    decode: Decoder
    keep_empty: bool
    keys: tuple[str, ...]


@cache
def _table() -> Any:
    return load("structs")


def _entry(index: int) -> Any:
    return _table()["types"][index]


@cache
def _index_of(name: str) -> int:
    return next(index for index, type_ in enumerate(_table()["types"]) if type_["name"] == name)


@cache
def kind_decoder(api_version: str, kind: str) -> Decoder:
    """Return the decoder of an object without apiVersion, kind and metadata, which are decoded before."""
    return _struct_decoder(_table()["kinds"][f"{api_version}/{kind}"], skipped=_COMMON_FIELDS)


@cache
def zero_value(api_version: str, kind: str) -> Callable[[], dict[str, Any]]:
    """Return a factory of what an empty object of the kind prints, without its metadata."""
    index = _table()["kinds"][f"{api_version}/{kind}"]

    def zero() -> dict[str, Any]:
        return {key: value for key, value in _zero(index).items() if key != "metadata"}

    return zero


@cache
def struct_decoder(name: str) -> Decoder:
    """Return the decoder of a struct by its Go name, such as `v1.ObjectMeta`."""
    return _struct_decoder(_index_of(name))


@cache
def _decoder(index: int) -> Decoder:
    entry = _entry(index)
    kind = entry["kind"]
    if kind == "pointer":
        return _decoder(entry["element"])
    if kind == "struct":
        return _lazy_struct_decoder(index)
    if kind == "list":
        return _list_decoder(entry)
    if kind == "map":
        return _map_decoder(entry)
    if entry["name"] in _SCHEMA_TYPES or entry["name"] == _SCHEMA_OR_BOOL:
        return _schema_union_decoder(entry["name"])
    return _scalar_decoder(_scalar_reader(kind, entry["name"]))


def _scalar_reader(kind: str, name: str) -> Reader:
    if kind in _PLAIN:
        return plain_reader(_PLAIN[kind], name)
    if kind in ("int32", "int64"):
        return int_reader(int(kind[3:]), name)
    if kind == "float64":
        return float_reader(name)
    return read_bytes if kind == "bytes" else special_reader(name)


def _scalar_decoder(read: Reader) -> Decoder:
    def decode(value: Any, _unknown: list[str]) -> Any:
        return read(value)

    return decode


def _lazy_struct_decoder(index: int) -> Decoder:
    """Return a decoder that is built for its first value: types are recursive, and most are never used."""
    decoders: list[Decoder] = []

    def decode(value: Any, unknown: list[str]) -> Any:
        if not decoders:
            decoders.append(_struct_decoder(index))
        return decoders[0](value, unknown)

    return decode


def _schema_union_decoder(name: str) -> Decoder:
    other = _SCHEMA_TYPES.get(name, bool)
    decode_schema = _lazy_struct_decoder(_index_of("v1.JSONSchemaProps"))

    def decode(value: Any, _unknown: list[str]) -> Any:
        # These types have their own UnmarshalJSON, which ignores unknown fields.
        if type(value) is dict:
            return decode_schema(value, [])
        if name == "v1.JSONSchemaPropsOrArray" and type(value) is list:
            return [decode_schema(each, []) for each in value]
        if type(value) is not other and other is bool:
            raise UnmarshalError("boolean or JSON schema expected")
        return value

    return decode


def _list_decoder(entry: Any) -> Decoder:
    element = _entry(entry["element"])
    plain = _PLAIN.get(element["kind"])
    decode_element = _decoder(entry["element"])
    name = entry["name"]

    def decode(value: Any, unknown: list[str]) -> Any:
        if type(value) is not list:
            raise UnmarshalTypeError(json_type(value), name)
        for at, item in enumerate(value):
            if type(item) is plain:
                continue
            count = len(unknown)
            value[at] = _zero(entry["element"]) if item is None else decode_element(item, unknown)
            if len(unknown) > count:
                unknown[count:] = [_join_path(f"[{at}]", path) for path in unknown[count:]]
        return value

    return decode


def _map_decoder(entry: Any) -> Decoder:
    element = _entry(entry["element"])
    plain = _PLAIN.get(element["kind"])
    decode_element = _decoder(entry["element"])
    name = entry["name"]

    def decode(value: Any, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise UnmarshalTypeError(json_type(value), name)
        for key, item in value.items():
            if type(item) is plain:
                continue
            count = len(unknown)
            value[key] = _zero(entry["element"]) if item is None else decode_element(item, unknown)
            if len(unknown) > count:
                unknown[count:] = [_join_path(key, path) for path in unknown[count:]]
        return value

    return decode


def _join_path(key: str, path: str) -> str:
    return key + path if path.startswith("[") else f"{key}.{path}"


def _struct_decoder(index: int, *, skipped: tuple[str, ...] = ()) -> Decoder:
    entry = _entry(index)
    name = entry["name"]
    short = name.rpartition(".")[2]
    fields = {field["key"]: _field(field) for field in entry.get("fields", ())}
    always = [(field["key"], field["type"]) for field in entry.get("fields", ()) if _is_always_printed(field)]
    for key in skipped:
        fields.pop(key, None)
    always = [(key, index) for key, index in always if key not in skipped]
    find = fields.get

    def decode(value: Any, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise UnmarshalTypeError(json_type(value), name)
        removed = []
        for key, item in value.items():
            field = find(key)
            if field is None:
                if key not in skipped:
                    unknown.append(key)
                    removed.append(key)
                continue
            if item is None:
                removed.append(key)
                continue
            if type(item) is not field.plain:
                item = value[key] = _decode_field(short, field, item, unknown)
            if not item and not field.keep_empty:
                removed.append(key)
        for key in removed:
            del value[key]
        for key, inner in always:
            if key not in value:
                value[key] = _field_zero(inner)
        return value

    return decode


def _decode_field(struct: str, field: _Field, item: Any, unknown: list[str]) -> Any:
    count = len(unknown)
    try:
        decoded = field.decode(item, unknown)
    except UnmarshalError as error:
        error.add_context(struct, field.keys)
        raise
    if len(unknown) > count:
        unknown[count:] = [_join_path(field.keys[-1], path) for path in unknown[count:]]
    return decoded


def _field(field: Any) -> _Field:
    entry = _entry(field["type"])
    kind = entry["kind"]
    target = _entry(entry["element"])["kind"] if kind == "pointer" else kind
    # Go omits empty strings, numbers, lists and maps, but never a struct, a pointer that is set, or a type with its own
    # MarshalJSON. The server decodes what it stores, and an empty list or map comes back as none.
    omits_empty = kind in ("list", "map") or (
        field.get("omitEmpty", False) and kind not in ("pointer", "struct", "special")
    )
    keys = (*field.get("through", ()), field["key"])
    return _Field(_PLAIN.get(target), _decoder(field["type"]), not omits_empty, keys)


def _is_always_printed(field: Any) -> bool:
    if field.get("omitZero"):
        return False
    return not field.get("omitEmpty") or _entry(field["type"])["kind"] in ("struct", "special")


def _zero(index: int) -> Any:
    entry = _entry(index)
    kind = entry["kind"]
    if kind == "struct":
        printed = [each for each in entry.get("fields", ()) if _is_always_printed(each)]
        return {each["key"]: _field_zero(each["type"]) for each in printed}
    if kind == "special":
        return _SPECIAL_ZEROS.get(entry["name"])
    return _ZEROS.get(kind)


def _field_zero(index: int) -> Any:
    # Missing bytes are null. Only as the value of a map do they come back from storage as an empty string.
    return None if _entry(index)["kind"] == "bytes" else _zero(index)
