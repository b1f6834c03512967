"""Bytes to objects and back.

Rules that hold here:

1. `decode` is one pass of msgspec over the bytes, whatever the type; the object keeps a reference to the bytes.
2. Some servers write null where the API description promises a list or a string. Nulls mean absent, so a decode that
   fails is tried once more without them; only then is it a `DecodeError`, which names the wire path.
3. `encode` writes what the class knows; `konverge.objects.edits` writes an edited object with all it came with.
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

import msgspec

from konverge.errors import DecodeError
from konverge.objects.resources import AnyObject, Resource, Untyped

__all__ = ["decode", "decode_untyped", "encode", "from_wire", "to_wire"]

T = TypeVar("T")
R = TypeVar("R", bound=Resource)

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


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_, dec_hook=_read_value)
    return decoder


_plain = msgspec.json.Decoder()


def decode(type_: type[T], data: bytes) -> T:
    """Read JSON bytes as `type_`; an object remembers the bytes it came from.

    Raises: DecodeError with the wire path when the bytes are not JSON or do not fit the type.
    """
    value: T
    try:
        value = _decoder(type_).decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        value = _decode_without_nulls(type_, data, error)
    if isinstance(value, Resource):
        value.remember_source(data)
    return value


def decode_untyped(data: bytes) -> Untyped:
    """Read JSON bytes as a dict with wire names."""
    return decode(Untyped, data)


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


def _decode_without_nulls(type_: type[T], data: bytes, error: Exception) -> T:
    try:
        value: T = _decoder(type_).decode(_encoder.encode(_without_nulls(_plain.decode(data))))
        return value
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
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
