"""Decode objects of built-in kinds from protobuf into the documents that their JSON would decode into.

A body is four bytes of magic and an envelope: apiVersion and kind, and the object as a message. Field numbers come
from a table of Kubernetes' Go types (protobuf_types.json.gz, written by tools/generate_builtins.py). The first `decode`
loads the table; importing this module does not. Rules:

1. The result is what Go would write as JSON: empty strings, zeros and false are left out where Go leaves them out. A
   pointer that is set keeps its zero.
2. Fields with unknown numbers are skipped. Bytes that are not protobuf, or not of the type of their field, raise
   `ProtobufError`.
3. The result for an unknown kind is its apiVersion and kind alone.
4. CustomResourceDefinitions are not supported: their schemas have message types that the table does not describe.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

import msgspec

from konverge.errors import DecodeError

__all__ = ["ProtobufDecoder", "ProtobufError"]

_MAGIC: Final = b"k8s\x00"
_EPOCH: Final = datetime(1970, 1, 1)
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_UNSUPPORTED_GROUP: Final = "apiextensions.k8s.io/"
_DELETE_OPTIONS: Final = "DeleteOptions"

Raw = int | bytes
Reader = Callable[[Raw], Any]


class ProtobufError(DecodeError):
    """A body that is not a valid protobuf message.

    `reason` is the text of Go's protobuf library. `kind` and `api_version` name the object that could not be decoded;
    they are empty when the envelope itself is invalid.
    """

    def __init__(self, reason: str, *, path: str = "", kind: str = "", api_version: str = "") -> None:
        place = f", at {path}" if path else ""
        super().__init__(f"decode {kind or 'protobuf'}: {reason}{place}", path=path)
        self.reason = reason
        self.kind = kind
        self.api_version = api_version


class _Invalid(ValueError):
    """Bytes that cannot be decoded; `keys` is the path to their field, completed while the exception propagates."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.keys: list[str] = []


class _WrongWireType(_Invalid):
    """A value with another wire type than its field has. The reason gets the name of the innermost field."""

    def __init__(self, wire_type: int) -> None:
        super().__init__(f"proto: wrong wireType = {wire_type}")


@dataclass(frozen=True, slots=True)
class _Field:
    """A field: its key in JSON, how a value is decoded, its container ("list", "map" or ""), Go's omitempty."""

    key: str
    read: Reader
    container: str
    omit_empty: bool


Fields = dict[int, "_Field | Fields"]
"""Fields by number. A nested mapping is an embedded struct: JSON has its fields one level higher."""


class ProtobufDecoder:
    """Decode objects of built-in kinds, and DeleteOptions of any group.

    `decode_json` decodes the JSON that some messages contain, such as managedFields; it raises ValueError for text that
    is not JSON.
    """

    def __init__(self, *, decode_json: Callable[[bytes], Any] | None = None) -> None:
        self._decode_json = decode_json or _decode_json
        self._fields: dict[int, Fields] = {}
        self._special_readers: dict[str, Reader] = {
            **_READERS,
            "v1.FieldsV1": self._embedded_json,
            "runtime.RawExtension": self._embedded_json,
        }

    def decode(self, body: bytes, api_version: str = "", kind: str = "") -> dict[str, Any]:
        """Decode a body; `api_version` and `kind` apply where the envelope has none.

        Raises: ProtobufError.
        """
        try:
            api_version, kind, message = _read_envelope(body, api_version, kind)
        except _Invalid as error:
            raise ProtobufError(error.reason) from None
        if api_version.startswith(_UNSUPPORTED_GROUP):
            raise ProtobufError("it is read as JSON or YAML only", kind=kind, api_version=api_version)
        index = _type_index(api_version, kind)
        try:
            content = {} if index is None else self._read_struct(index, _bytes(message))
        except _Invalid as error:
            path = "".join(f".{key}" for key in error.keys)
            raise ProtobufError(error.reason, path=path, kind=kind, api_version=api_version) from None
        return {"apiVersion": api_version, "kind": kind, **content}

    def _read_struct(self, index: int, data: bytes) -> dict[str, Any]:
        fields = self._fields.get(index)
        if fields is None:
            fields = self._fields[index] = self._fields_of(index)
        content: dict[str, Any] = {}
        _read_fields(content, fields, data)
        return content

    def _fields_of(self, index: int) -> Fields:
        fields: Fields = {}
        for field in _types()[index].get("fields", ()):
            *outer, number = field["numbers"]
            inner = fields
            for each in outer:
                below = inner.setdefault(each, {})
                assert isinstance(below, dict)
                inner = below
            inner[number] = self._field(field)
        return fields

    def _field(self, field: Any) -> _Field:
        type_ = _types()[field["type"]]
        kind = type_["kind"]
        container = kind if kind in ("list", "map") else ""
        read = self._reader(type_["element"] if container else field["type"])
        omit_empty = field.get("omitEmpty", False) and kind not in ("pointer", "struct", "special")
        return _Field(field["key"], read, container, omit_empty)

    def _reader(self, index: int) -> Reader:
        type_ = _types()[index]
        kind, name = type_["kind"], type_["name"]
        if kind == "pointer":
            return self._reader(type_["element"])
        if kind == "struct":
            return lambda raw: self._read_struct(index, _bytes(raw))
        return self._special_readers[name if name in self._special_readers else kind]

    def _embedded_json(self, raw: Raw) -> Any:
        text = _bytes(dict(_values(_bytes(raw))).get(1, b""))
        try:
            return self._decode_json(text) if text else None
        except ValueError as error:
            raise _Invalid(str(error)) from error


def _decode_json(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _read_envelope(body: bytes, api_version: str, kind: str) -> tuple[str, str, Raw]:
    """Return apiVersion, kind and the message of the object."""
    if not body:
        raise _Invalid("empty data")
    if not body.startswith(_MAGIC):
        prefix = " ".join(map(str, _MAGIC))
        raise _Invalid(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    if body == _MAGIC:
        raise _Invalid("empty body")
    envelope = dict(_values(body[len(_MAGIC) :]))
    type_meta = dict(_values(_bytes(envelope.get(1, b""))))
    api_version = _string(type_meta.get(1, b"")) or api_version
    kind = _string(type_meta.get(2, b"")) or kind
    return api_version, kind, envelope.get(2, b"")


def _read_fields(content: dict[str, Any], fields: Fields, data: bytes) -> None:
    for number, raw in _values(data):
        field = fields.get(number)
        if isinstance(field, dict):
            _read_fields(content, field, _bytes(raw))
        elif field is not None:
            try:
                _read_field(content, field, raw)
            except _Invalid as error:
                raise _inside(error, field.key) from None


def _inside(error: _Invalid, key: str) -> _Invalid:
    """Return the error with `key` in front of its path. A wrong wire type names the innermost field only."""
    outer = error
    if isinstance(error, _WrongWireType):
        outer = _Invalid(f"{error.reason} for field {key[0].upper()}{key[1:]}")
    outer.keys = [key, *error.keys]
    return outer


def _read_field(content: dict[str, Any], field: _Field, raw: Raw) -> None:
    if field.container == "map":
        entry = dict(_values(_bytes(raw)))
        content.setdefault(field.key, {})[_string(entry.get(1, b""))] = field.read(entry.get(2, b""))
        return
    value = field.read(raw)
    if field.container == "list":
        content.setdefault(field.key, []).append(value)
    elif value is not None and (value or not field.omit_empty):
        content[field.key] = value


def _values(data: bytes) -> Iterator[tuple[int, Raw]]:
    """Yield the fields of a message in their order: number and value."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire_type == _BYTES:
            size, at = _varint(data, at)
        elif wire_type in (_FIXED64, _FIXED32):
            size = 8 if wire_type == _FIXED64 else 4
        else:
            raise _Invalid(f"proto: illegal wireType {wire_type}")
        if at + size > len(data):
            raise _Invalid("unexpected EOF")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that starts at an offset, and the offset behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise _Invalid("unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
    raise _Invalid("proto: integer overflow")


def _bytes(raw: Raw) -> bytes:
    if isinstance(raw, int):
        raise _WrongWireType(_VARINT)
    return raw


def _int(raw: Raw) -> int:
    if not isinstance(raw, int):
        raise _WrongWireType(_BYTES)
    return raw - 2**64 if raw >= 2**63 else raw


def _bool(raw: Raw) -> bool:
    return bool(_int(raw))


def _string(raw: Raw) -> str:
    # Go keeps invalid UTF-8 in memory and replaces it when it writes JSON.
    return _bytes(raw).decode("utf-8", "replace")


def _base64(raw: Raw) -> str:
    return base64.b64encode(_bytes(raw)).decode()


def _time(raw: Raw, timespec: str = "seconds") -> str | None:
    if not _bytes(raw):
        return None
    message = dict(_values(_bytes(raw)))
    microseconds = _int(message.get(2, 0)) // 1000 if timespec == "microseconds" else 0
    try:
        time = _EPOCH + timedelta(seconds=_int(message.get(1, 0)), microseconds=microseconds)
    except OverflowError:
        raise _Invalid("a time that is out of range") from None
    return f"{time.isoformat(timespec=timespec)}Z"


def _micro_time(raw: Raw) -> str | None:
    return _time(raw, "microseconds")


def _int_or_string(raw: Raw) -> int | str:
    message = dict(_values(_bytes(raw)))
    return _string(message.get(3, b"")) if message.get(1, 0) else _int(message.get(2, 0))


def _quantity(raw: Raw) -> str:
    return _string(dict(_values(_bytes(raw))).get(1, b"")) or "0"


def _extra_value(raw: Raw) -> list[str]:
    return [_string(value) for number, value in _values(_bytes(raw)) if number == 1]


_READERS: Final[dict[str, Reader]] = {
    "string": _string,
    "bool": _bool,
    "int32": _int,
    "int64": _int,
    "bytes": _base64,
    "v1.Time": _time,
    "v1.MicroTime": _micro_time,
    "intstr.IntOrString": _int_or_string,
    "resource.Quantity": _quantity,
    "v1.ExtraValue": _extra_value,
}


@cache
def _table() -> Any:
    from importlib.resources import files  # protobuf is rarely used

    packed = files("konverge.wire").joinpath("protobuf_types.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(packed))


def _types() -> Any:
    return _table()["types"]


@cache
def _type_index(api_version: str, kind: str) -> int | None:
    if kind == _DELETE_OPTIONS:
        return next(index for index, type_ in enumerate(_types()) if type_["name"] == f"v1.{_DELETE_OPTIONS}")
    index: int | None = _table()["kinds"].get(f"{api_version}/{kind}")
    return index
