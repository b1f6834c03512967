"""Encode objects to JSON and decode them.

Rules:

1. `decode` is one pass of msgspec over the bytes, whatever the type; the object keeps a reference to the bytes.
2. Some servers send null where the API description promises a list or a string. A null means absent, so a failed decode
   is repeated without nulls before it raises `DecodeError` with the wire path.
3. `encode` encodes the fields of the class; `konverge.objects.edits` adds those that the class does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

import msgspec

from konverge.errors import DecodeError
from konverge.objects.metadata import ListMeta, ManagedFieldsEntry
from konverge.objects.resources import SOURCE, AnyObject, ListItemSource, ListSource, Resource, Unstructured

__all__ = [
    "decode",
    "decode_list",
    "decode_unstructured",
    "decode_with_document",
    "decoder_for",
    "encode",
    "from_wire",
    "to_wire",
]

T = TypeVar("T")

_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_EMPTY_STATUS = b',"status":{}}'


def _encode_value(value: Any) -> Any:
    """Encode the value types that msgspec does not know, with their method `to_wire`."""
    to_wire = getattr(value, "to_wire", None)
    if to_wire is None:
        raise TypeError(f"{type(value).__name__} cannot be encoded as JSON: {value!r:.100}")
    return to_wire()


def _decode_value(type_: type[Any], value: Any) -> Any:
    from_wire = getattr(type_, "from_wire", None)
    if from_wire is None:
        raise TypeError(f"{type_.__name__} cannot be decoded from JSON (add a classmethod from_wire)")
    return from_wire(value)


_encoder = msgspec.json.Encoder(enc_hook=_encode_value)
_deterministic_encoder = msgspec.json.Encoder(enc_hook=_encode_value, order="deterministic")


_plain = msgspec.json.Decoder()


_decoders: dict[Any, Callable[[bytes], Any]] = {}
_list_decoders: dict[Any, Callable[[bytes], Any]] = {}


def decode(type_: type[T], data: bytes) -> T:
    """Decode JSON bytes as `type_`; an object keeps the bytes as its source.

    Raises: DecodeError with the wire path when the bytes are not JSON or do not match the type.
    """
    return decoder_for(type_)(data)


def decoder_for(type_: type[T]) -> Callable[[bytes], T]:
    """Return `decode` for one type, for loops over many objects."""
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = _make_decoder(type_)
    return decoder


def decode_list(type_: type[T], data: bytes) -> tuple[ListMeta, list[T]]:
    """Decode the JSON bytes of a list of objects in one pass; return its metadata and its items.

    Each object keeps the bytes of the whole list in memory; a copy by `copy.deepcopy` has bytes of its own.

    Raises: DecodeError that names the first item that does not match the type.
    """
    envelope = _list_decoder_for(type_)(data)
    items = envelope.items or []
    if isinstance(type_, type) and issubclass(type_, Resource):
        source = ListSource(data)
        for index, item in enumerate(items):
            item.__dict__[SOURCE] = ListItemSource(source, index)
    return envelope.metadata, items


def _list_decoder_for(type_: Any) -> Callable[[bytes], Any]:
    decoder = _list_decoders.get(type_)
    if decoder is None:
        metadata = ("metadata", ListMeta, msgspec.field(default_factory=ListMeta))
        envelope = msgspec.defstruct(f"list of {type_.__name__}", [metadata, ("items", list[type_] | None, None)])
        decoder = _list_decoders[type_] = _make_decoder(envelope)
    return decoder


def decode_unstructured(data: bytes) -> Unstructured:
    """Decode JSON bytes as an unstructured object."""
    return decode(Unstructured, data)


def decode_with_document(type_: type[T], data: bytes) -> tuple[T, Unstructured]:
    """Return the object that `decode` returns, and the same as JSON values; the bytes are parsed once.

    They are parsed again only if the values do not match the type as they are. Do not change the values: the object may
    share them.

    Raises: DecodeError as `decode` does.
    """
    try:
        found: dict[str, Any] = _plain.decode(data)
        document = Unstructured({**found})  # raises TypeError for anything but a JSON object
        if type_ is Unstructured:
            return cast(T, document), document
        metadata = document["metadata"]
        managed = metadata.get("managedFields")
        rest = {**document, "metadata": {**metadata, "managedFields": []}} if managed else document
        value: Any = msgspec.convert(rest, type_, dec_hook=_decode_value)
        for one in managed or ():
            # The fields are kept as bytes, which cannot be converted.
            rest = dict(one)
            fields = rest.pop("fieldsV1", None)
            entry = msgspec.convert(rest, ManagedFieldsEntry)
            entry.fields_v1 = msgspec.Raw(_encoder.encode(fields))
            value.metadata.managed_fields.append(entry)
    except (*_DECODE_ERRORS, AttributeError, KeyError, TypeError, ValueError):
        return decode(type_, data), decode(Unstructured, data)
    value.__dict__[SOURCE] = data
    return cast(T, value), document


def encode(value: Any) -> bytes:
    """Encode a model, an object or plain JSON values as JSON bytes."""
    return _without_empty_status(value, _encoder.encode(value))


@overload
def to_wire(value: AnyObject) -> dict[str, Any]: ...
@overload
def to_wire(value: Any) -> Any: ...
def to_wire(value: Any) -> Any:
    """Return a model or object as plain JSON values with wire names; equal ones have equal values, even with sets."""
    return _plain.decode(encode_in_order(value))


def encode_in_order(value: Any) -> bytes:
    """Encode a model or object as JSON bytes; equal ones have equal bytes, even with sets."""
    return _without_empty_status(value, _deterministic_encoder.encode(value))


def from_wire(type_: type[T], value: Any) -> T:
    """Decode plain JSON values with wire names as `type_`; the inverse of `to_wire`."""
    return decode(type_, _encoder.encode(value))


def _without_empty_status(value: Any, data: bytes) -> bytes:
    # An object always has a status attribute; an empty one is not encoded. The status is always the last field.
    if isinstance(value, Resource) and data.endswith(_EMPTY_STATUS):
        return data[: -len(_EMPTY_STATUS)] + b"}"
    return data


def _make_decoder(type_: type[T]) -> Callable[[bytes], T]:
    read: Callable[[bytes], Any] = msgspec.json.Decoder(type_, dec_hook=_decode_value).decode

    def decode_value(data: bytes) -> T:
        try:
            value: T = read(data)
        except _DECODE_ERRORS as error:
            value = _decode_without_nulls(type_, read, data, error)
        return value

    def decode_object(data: bytes) -> T:
        # A copy of decode_value instead of a call: this is the hottest function of all.
        try:
            value: T = read(data)
        except _DECODE_ERRORS as error:
            value = _decode_without_nulls(type_, read, data, error)
        value.__dict__[SOURCE] = data
        return value

    return decode_object if isinstance(type_, type) and issubclass(type_, Resource) else decode_value


def _decode_without_nulls(type_: type[T], read: Callable[[bytes], T], data: bytes, error: Exception) -> T:
    try:
        return read(_encoder.encode(_without_nulls(_plain.decode(data))))
    except _DECODE_ERRORS:
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
