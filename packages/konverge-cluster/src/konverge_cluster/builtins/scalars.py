"""Scalar values in Go structs: numbers, strings, quantities, times, base64, and unions of them.

A reader takes a JSON value that is not null and returns the value that the real server would print. It raises
`UnmarshalError` if the value does not fit the Go type.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from konverge.objects.quantities import Quantity
from konverge_cluster.builtins.timestamps import read_micro_time, read_time
from konverge_cluster.builtins.unmarshal_errors import UnmarshalError, UnmarshalTypeError, json_type

__all__ = ["Reader", "float_reader", "int_reader", "plain_reader", "read_bytes", "special_reader"]

Reader = Callable[[Any], Any]

_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)
_BASE64_LETTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_QUANTITY_FORMAT: Final = re.compile(r"[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*", re.ASCII)
_QUANTITY_FORMAT_TEXT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


def plain_reader(kind: type, name: str) -> Reader:
    """Return a reader of strings or booleans; `name` is the Go type."""

    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise UnmarshalTypeError(json_type(value), name)
        return value

    return read


def int_reader(bits: int, name: str) -> Reader:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)

    def read(value: Any) -> Any:
        if type(value) is int and low <= value < high:
            return value
        kind = json_type(value)
        raise UnmarshalTypeError(f"number {value!r}" if kind == "number" else kind, name)

    return read


def float_reader(name: str) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is float or type(value) is int:
            return value
        kind = json_type(value)
        raise UnmarshalTypeError(f"number {value!r}" if kind == "number" else kind, name)

    return read


_read_int32: Final = int_reader(32, "int32")
_read_string: Final = plain_reader(str, "string")


def _read_int_or_string(value: Any) -> Any:
    return value if type(value) is str else _read_int32(value)


def _read_time(value: Any) -> Any:
    return read_time(_read_string(value))


def _read_micro_time(value: Any) -> Any:
    return read_micro_time(_read_string(value))


def _read_quantity(value: Any) -> Any:
    if type(value) is str:
        return _canonical(value)
    if type(value) is int or type(value) is float:
        return _canonical(str(value))
    raise UnmarshalError(_QUANTITY_FORMAT_TEXT)


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    text = text.strip()
    try:
        return Quantity(text).canonical()
    except ValueError:
        has_format = _QUANTITY_FORMAT.fullmatch(text) is not None
        raise UnmarshalError("unable to parse quantity's suffix" if has_format else _QUANTITY_FORMAT_TEXT) from None


def read_bytes(value: Any) -> Any:
    """Validate base64 and return it without line breaks."""
    if type(value) is not str:
        raise UnmarshalTypeError(json_type(value), "[]uint8")
    if not _BASE64.fullmatch(value):
        illegal = _first_illegal(value)
        if illegal is not None:
            raise UnmarshalError(f"illegal base64 data at input byte {illegal}")
        value = value.replace("\n", "").replace("\r", "")
    # Go and Python both ignore trailing bits that form no byte; encoding again drops them.
    return base64.b64encode(base64.b64decode(value)).decode()


def _first_illegal(text: str) -> int | None:
    """Return the offset at which Go's decoder stops. It reads four letters at a time and skips line breaks."""
    at = 0
    while True:
        count = 0
        while count < 4:
            if at == len(text):
                return at - count if count else None
            letter = text[at]
            at += 1
            if letter in _BASE64_LETTERS:
                count += 1
            elif letter == "=":
                return _bad_padding(text, at, count)
            elif letter not in "\r\n":
                return at - 1


def _bad_padding(text: str, at: int, count: int) -> int | None:
    """Return the offset of an error in the padding; `at` follows the first "=", `count` letters precede it."""
    if count < 2:
        return at - 1
    if count == 2:
        at = _skip_breaks(text, at)
        if at == len(text):
            return at
        if text[at] != "=":
            return at - 1
        at += 1
    at = _skip_breaks(text, at)
    return at if at < len(text) else None


def _skip_breaks(text: str, at: int) -> int:
    while at < len(text) and text[at] in "\r\n":
        at += 1
    return at


def _read_any(value: Any) -> Any:
    return value


_SPECIAL: Final[dict[str, Reader]] = {
    "v1.Time": _read_time,
    "v1.MicroTime": _read_micro_time,
    "resource.Quantity": _read_quantity,
    "intstr.IntOrString": _read_int_or_string,
    "v1.FieldsV1": _read_any,
    "v1.JSON": _read_any,
    "runtime.RawExtension": _read_any,
}


def special_reader(name: str) -> Reader:
    """Return the reader of a Go type with its own UnmarshalJSON."""
    return _SPECIAL[name]
