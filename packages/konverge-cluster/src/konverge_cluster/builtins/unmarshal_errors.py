"""A value that its Go type cannot hold, in the words of Go.

Go names the innermost struct, the keys that lead to the field (embedded structs by their Go name, no list indices), and
the Go type of the field. The readers of the structs complete the path while the exception passes through them.
"""

from __future__ import annotations

from typing import Any

__all__ = ["UnmarshalError", "UnmarshalTypeError", "json_type"]


class UnmarshalError(ValueError):
    """A value that cannot be read; `text` is what Go says."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self._text = text

    @property
    def text(self) -> str:
        return self._text

    def add_context(self, struct: str, keys: tuple[str, ...]) -> None:
        """Note on the way out which field of which struct held the value; most texts do not say."""


class UnmarshalTypeError(UnmarshalError):
    """A JSON value of the wrong type; `found` describes it as Go does ("string", "number 1.5")."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__()
        self._found = found
        self._expected = expected
        self._struct = ""
        self._keys: list[str] = []

    @property
    def text(self) -> str:
        place = f"struct field {self._struct}.{'.'.join(self._keys)}" if self._struct else "value"
        return f"json: cannot unmarshal {self._found} into Go {place} of type {self._expected}"

    def add_context(self, struct: str, keys: tuple[str, ...]) -> None:
        self._struct = self._struct or struct
        self._keys[:0] = keys


def json_type(value: Any) -> str:
    """Name the type of a JSON value as Go does."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
