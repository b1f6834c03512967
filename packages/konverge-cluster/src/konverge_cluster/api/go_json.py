"""A JSON scanner with the error texts of the real server's parser, which also finds duplicate keys.

The fast decoder of bodies.py decodes every request. This scanner reads a text a second time, character by character,
when the fast decoder failed (to produce the error text) or dropped a duplicate key (to name it).
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from konverge_cluster.api.field_errors import quote

__all__ = ["MAX_DEPTH", "HugeNumber", "JsonSyntaxError", "duplicate_keys"]

# The limit of the real parser is 10,000. A recursive step of this server takes several frames of Python's stack, so the
# limit is lower; the text is the same.
MAX_DEPTH: Final = 200

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]*')
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_LITERALS: Final = {"t": "true", "f": "false", "n": "null"}


class JsonSyntaxError(ValueError):
    """The text is not JSON; the message is that of the real server's parser."""


class HugeNumber(float):
    """A number that no float64 can hold: infinite, but it is printed as in the text, as the real server does.

    Python refuses to convert thousands of digits to an integer.
    """

    text: str

    def __new__(cls, text: str) -> HugeNumber:
        number = super().__new__(cls, "-inf" if text.startswith("-") else "inf")
        number.text = text
        return number

    def __repr__(self) -> str:
        return self.text

    def __format__(self, _format: str) -> str:
        return self.text

    __str__ = __repr__


def duplicate_keys(text: str) -> list[str]:
    """Return the paths of duplicate keys, in the order of the text.

    Raises: JsonSyntaxError when the text is not JSON.
    """
    return _Scanner(text).run()


class _Level:
    """One open object or array: its path, and the keys or the index read so far."""

    __slots__ = ("index", "key", "keys", "path")

    def __init__(self, path: str, *, is_object: bool) -> None:
        self.path = path
        self.keys: set[str] | None = set() if is_object else None
        self.index = 0
        self.key = ""

    def child_path(self) -> str:
        if self.keys is None:
            return f"{self.path}[{self.index}]"
        return f"{self.path}.{self.key}" if self.path else self.key


class _Scanner:
    """Reads one value without recursion: a stack of levels, and one method for each grammar rule."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._offset = 0
        self._levels: list[_Level] = []
        self._duplicates: list[str] = []

    def run(self) -> list[str]:
        self._value()
        while self._levels:
            level = self._levels[-1]
            if level.keys is None:
                self._after_element(level)
            else:
                self._after_member(level)
        self._skip()
        if self._offset < len(self._text):
            self._fail("after top-level value")
        return self._duplicates

    def _after_member(self, level: _Level) -> None:
        character = self._peek()
        if character == "}":
            self._close()
        elif character == ",":
            self._offset += 1
            self._member(level)
        else:
            self._fail("after object key:value pair")

    def _after_element(self, level: _Level) -> None:
        character = self._peek()
        if character == "]":
            self._close()
        elif character == ",":
            self._offset += 1
            level.index += 1
            self._value()
        else:
            self._fail("after array element")

    def _close(self) -> None:
        self._offset += 1
        self._levels.pop()

    def _value(self) -> None:
        character = self._peek()
        if character in "{[":
            self._open(character)
        elif character == '"':
            self._string()
        elif character in _LITERALS:
            self._literal(_LITERALS[character])
        elif character in "-0123456789":
            self._number()
        else:
            self._fail("looking for beginning of value")

    def _open(self, character: str) -> None:
        if len(self._levels) >= MAX_DEPTH:
            self._fail("exceeded max depth")
        level = _Level(self._levels[-1].child_path() if self._levels else "", is_object=character == "{")
        self._levels.append(level)
        self._offset += 1
        next_character = self._peek()
        if next_character == ("}" if level.keys is not None else "]"):
            return
        if level.keys is not None:
            self._member(level)
        else:
            self._value()

    def _member(self, level: _Level) -> None:
        assert level.keys is not None
        if self._peek() != '"':
            self._fail("looking for beginning of object key string")
        level.key = self._string()
        if level.key in level.keys:
            self._duplicates.append(level.child_path())
        level.keys.add(level.key)
        if self._peek() != ":":
            self._fail("after object key")
        self._offset += 1
        self._value()

    def _string(self) -> str:
        start = self._offset
        self._offset += 1
        while True:
            self._offset = _PLAIN.match(self._text, self._offset).end()  # type: ignore[union-attr]
            character = self._current()
            if character == '"':
                self._offset += 1
                return self._text[start + 1 : self._offset - 1]
            if character != "\\":
                self._fail("in string literal")
            self._escape()

    def _escape(self) -> None:
        self._offset += 1
        character = self._current_or_space()
        if character == "u":
            for _ in range(4):
                self._offset += 1
                if self._current_or_space() not in _HEX:
                    self._fail("in \\u hexadecimal character escape")
        elif character not in 'bfnrt\\/"':
            self._fail("in string escape code")
        self._offset += 1

    def _literal(self, word: str) -> None:
        for expected in word:
            if self._current_or_space() != expected:
                self._fail(f"in literal {word} (expecting '{expected}')")
            self._offset += 1

    def _number(self) -> None:
        matched = _NUMBER.match(self._text, self._offset)
        if matched is None:
            self._offset += 1
            self._fail("in numeric literal")
        self._offset = matched.end()
        character = self._text[self._offset : self._offset + 1]
        if character == "." and matched[2] is None and matched[3] is None:
            self._offset += 1
            self._fail("after decimal point in numeric literal")
        if character and character in "eE" and matched[3] is None:
            self._offset += 2 if self._text[self._offset + 1 : self._offset + 2] in ("+", "-") else 1
            self._fail("in exponent of numeric literal")

    def _skip(self) -> None:
        self._offset = _SPACE.match(self._text, self._offset).end()  # type: ignore[union-attr]

    def _peek(self) -> str:
        self._skip()
        return self._current()

    def _current(self) -> str:
        if self._offset >= len(self._text):
            raise JsonSyntaxError("unexpected end of JSON input")
        return self._text[self._offset]

    def _current_or_space(self) -> str:
        # At the end of the text the real parser tries a space, and reports it where no space is allowed.
        return self._text[self._offset] if self._offset < len(self._text) else " "

    def _fail(self, context: str) -> NoReturn:
        character = self._current_or_space()
        quoted = {"'": r"'\''", '"': "'\"'"}.get(character) or f"'{quote(character)[1:-1]}'"
        raise JsonSyntaxError(f"invalid character {quoted} {context}")
