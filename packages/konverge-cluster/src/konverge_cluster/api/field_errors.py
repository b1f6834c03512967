"""Field validation errors, with the texts of the real server (apimachinery: field.Error).

A `FieldError` is one cause of a 422 Invalid response. Its text is `<path>: <kind>: <value>: <detail>`. The functions
below create them. A path is a wire path such as `spec.ports[0].name` or `metadata.annotations[a]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

__all__ = [
    "OMIT_VALUE",
    "FieldError",
    "duplicate",
    "forbidden",
    "internal",
    "invalid",
    "not_found",
    "quote",
    "required",
    "too_few",
    "too_long",
    "too_many",
    "too_short",
    "type_invalid",
    "unsupported",
]


class _OmitValue:
    """The value of an error whose text does not include the value (apimachinery: OmitValueType)."""


OMIT_VALUE: Final = _OmitValue()

_ERROR_TEXTS: Final = {
    "FieldValueNotFound": "Not found",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueTooFew": "Too few",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueTooShort": "Too short",
    "InternalError": "Internal error",
}

_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One invalid field: `reason` is the cause type, `value` the rejected value, `detail` the rest of the text."""

    reason: str
    path: str
    value: Any = OMIT_VALUE
    detail: str = ""

    @property
    def body(self) -> str:
        """The text without the path: `details.causes[].message`."""
        text = _ERROR_TEXTS[self.reason]
        if self.value is not OMIT_VALUE:
            text = f"{text}: {_format_value(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


def quote(text: str) -> str:
    """Quote a string as Go's %q does: everything that is not printable is escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_ESCAPES.get(character) or _escape(character) for character in text) + '"'


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    # Go's encoder escapes these three in JSON texts.
    text = msgspec.json.encode(value).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def invalid(path: str, value: Any, detail: str = "") -> FieldError:
    return FieldError("FieldValueInvalid", path, value, detail)


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueTypeInvalid", path, value, detail)


def required(path: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", path, OMIT_VALUE, detail)


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", path, OMIT_VALUE, detail)


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", path, value)


def not_found(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueNotFound", path, value)


def internal(path: str, detail: str) -> FieldError:
    return FieldError("InternalError", path, OMIT_VALUE, detail)


def unsupported(path: str, value: Any, allowed: Iterable[str]) -> FieldError:
    """Return the error for a value that is not one of `allowed`, which are listed in the given order."""
    names = ", ".join(quote(name) for name in allowed)
    return FieldError("FieldValueNotSupported", path, value, f"supported values: {names}" if names else "")


def too_long(path: str, limit: int) -> FieldError:
    unit = "byte" if limit == 1 else "bytes"
    return FieldError("FieldValueTooLong", path, OMIT_VALUE, f"may not be more than {limit} {unit}")


def too_many(path: str, count: int, limit: int) -> FieldError:
    unit = "item" if limit == 1 else "items"
    return FieldError("FieldValueTooMany", path, count, f"must have at most {limit} {unit}")


def too_few(path: str, count: int, limit: int) -> FieldError:
    unit = "item" if limit == 1 else "items"
    return FieldError("FieldValueTooFew", path, count, f"must have at least {limit} {unit}")


def too_short(path: str, limit: int) -> FieldError:
    unit = "character" if limit == 1 else "characters"
    return FieldError("FieldValueTooShort", path, OMIT_VALUE, f"must be at least {limit} {unit}")
