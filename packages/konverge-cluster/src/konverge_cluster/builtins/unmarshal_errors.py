"""Errors for JSON values that do not fit their Go type, with the texts of Go's encoding/json.

Go names the innermost struct, the keys that lead to the field (embedded structs by their Go name, no list indices), and
the Go type of the field. The struct decoders complete the path while the exception propagates.
"""

from __future__ import annotations

from typing import Any

__all__ = ["UnmarshalError", "UnmarshalTypeError", "json_type"]


class UnmarshalError(ValueError):
    """A value that cannot be decoded; `text` is the error text of Go."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self._text = text

    @property
    def text(self) -> str:
        return self._text

    def add_context(self, struct: str, keys: tuple[str, ...]) -> None:
        """Record the struct and the field of the value. Most error texts do not contain them."""


class UnmarshalTypeError(UnmarshalError):
    """A JSON value of the wrong type; `value` describes it as Go does ("string", "number 1.5")."""

    def __init__(self, value: str, expected: str) -> None:
        super().__init__()
        self._value = value
        self._expected = expected
        self._struct = ""
        self._keys: list[str] = []

    @property
    def text(self) -> str:
        place = f"struct field {self._struct}.{'.'.join(self._keys)}" if self._struct else "value"
        return f"json: cannot unmarshal {self._value} into Go {place} of type {self._expected}"

    def add_context(self, struct: str, keys: tuple[str, ...]) -> None:
        self._struct = self._struct or struct
        self._keys[:0] = keys


def json_type(value: Any) -> str:
    """Return the name of a JSON value's type in Go's errors."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
