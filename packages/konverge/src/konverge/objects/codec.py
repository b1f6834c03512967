"""Bytes to objects and back.

Rules that hold here:

1. `decode` is one pass of msgspec over the bytes, whatever the type; the object keeps a reference to the bytes.
2. Some servers write null where the API description promises a list or a string. Nulls mean absent, so a decode that
   fails is tried once more without them; only then is it a `DecodeError`, which names the wire path.
3. `encode` writes what the class knows; `konverge.objects.edits` writes an edited object with all it came with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec

from konverge.errors import DecodeError
from konverge.objects.metadata import ListMeta
from konverge.objects.resources import SOURCE, AnyObject, ListText, PartOfList, Resource, Unstructured

__all__ = ["decode", "decode_list", "decode_unstructured", "encode", "from_wire", "reader_of", "to_wire"]

T = TypeVar("T")

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_EMPTY_STATUS = b',"status":{}}'


def _write_value(value: Any) -> Any:
    """Write the value types that msgspec does not know; each says itself how it looks on the wire."""
    to_wire = getattr(value, "to_wire", None)
    if to_wire is None:
        raise TypeError(f"{type(value).__name__} cannot be written as JSON: {value!r:.100}")
    return to_wire()


def _read_value(type_: type[Any], value: Any) -> Any:
    from_wire = getattr(type_, "from_wire", None)
    if from_wire is None:
        raise TypeError(f"{type_.__name__} cannot be read from JSON: give it a classmethod from_wire")
    return from_wire(value)


_encoder = msgspec.json.Encoder(enc_hook=_write_value)
_steady_encoder = msgspec.json.Encoder(enc_hook=_write_value, order="deterministic")


_plain = msgspec.json.Decoder()


_readers: dict[Any, Callable[[bytes], Any]] = {}
_list_readers: dict[Any, Callable[[bytes], Any]] = {}


def decode(type_: type[T], data: bytes) -> T:
    """Read JSON bytes as `type_`; an object remembers the bytes it came from.

    Raises: DecodeError with the wire path when the bytes are not JSON or do not fit the type.
    """
    return reader_of(type_)(data)


def reader_of(type_: type[T]) -> Callable[[bytes], T]:
    """Give `decode` for one type, for loops over many objects."""
    reader = _readers.get(type_)
    if reader is None:
        reader = _readers[type_] = _make_reader(type_)
    return reader


def decode_list(type_: type[T], data: bytes) -> tuple[ListMeta, list[T]]:
    """Read the JSON bytes of a list of objects in one pass: its metadata and its items.

    An object that is kept keeps the bytes of the whole list; a copy by `copy.deepcopy` has bytes of its own.

    Raises: DecodeError that names the first item that does not fit.
    """
    envelope = _list_reader_of(type_)(data)
    items = envelope.items or []
    if isinstance(type_, type) and issubclass(type_, Resource):
        text = ListText(data)
        for place, item in enumerate(items):
            item.__dict__[SOURCE] = PartOfList(text, place)
    return envelope.metadata, items


def _list_reader_of(type_: Any) -> Callable[[bytes], Any]:
    reader = _list_readers.get(type_)
    if reader is None:
        metadata = ("metadata", ListMeta, msgspec.field(default_factory=ListMeta))
        envelope = msgspec.defstruct(f"list of {type_.__name__}", [metadata, ("items", list[type_] | None, None)])
        reader = _list_readers[type_] = _make_reader(envelope)
    return reader


def decode_unstructured(data: bytes) -> Unstructured:
    """Read JSON bytes as a dict with wire names."""
    return decode(Unstructured, data)


def encode(value: Any) -> bytes:
    """Write a model, an object or plain JSON values as JSON bytes, as its class knows it."""
    return _trimmed(value, _encoder.encode(value))


@overload
def to_wire(value: AnyObject) -> dict[str, Any]: ...
@overload
def to_wire(value: Any) -> Any: ...
def to_wire(value: Any) -> Any:
    """Give a model or an object as plain JSON values with wire names; equal ones give equal values, sets included."""
    return _plain.decode(_trimmed(value, _steady_encoder.encode(value)))


def from_wire(type_: type[T], value: Any) -> T:
    """Read plain JSON values with wire names as `type_`; the opposite of `to_wire`."""
    return decode(type_, _encoder.encode(value))


def _trimmed(value: Any, data: bytes) -> bytes:
    # A status is always there to be read; one that says nothing is not written. It is an object's last field by rule.
    if isinstance(value, Resource) and data.endswith(_EMPTY_STATUS):
        return data[: -len(_EMPTY_STATUS)] + b"}"
    return data


def _make_reader(type_: type[T]) -> Callable[[bytes], T]:
    read: Callable[[bytes], Any] = msgspec.json.Decoder(type_, dec_hook=_read_value).decode

    def decode_value(data: bytes) -> T:
        try:
            value: T = read(data)
        except _UNREADABLE as error:
            value = _read_without_nulls(type_, read, data, error)
        return value

    def decode_object(data: bytes) -> T:
        # The same again, not a call of it: this is the hottest function of all.
        try:
            value: T = read(data)
        except _UNREADABLE as error:
            value = _read_without_nulls(type_, read, data, error)
        value.__dict__[SOURCE] = data
        return value

    return decode_object if isinstance(type_, type) and issubclass(type_, Resource) else decode_value


def _read_without_nulls(type_: type[T], read: Callable[[bytes], T], data: bytes, error: Exception) -> T:
    try:
        return read(_encoder.encode(_without_nulls(_plain.decode(data))))
    except _UNREADABLE:
        raise _decode_error(type_, error) from error


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _decode_error(type_: Any, error: Exception) -> DecodeError:
    text = str(error)
    what, _, path = text.partition(" - at ")
    path = path.strip("`").removeprefix("$")
    what = what[:1].lower() + what[1:].replace("`", "")
    name = getattr(type_, "__name__", str(type_))
    return DecodeError(f"{what}, at {path} of {name}" if path else f"{what} (reading {name})", path=path)
