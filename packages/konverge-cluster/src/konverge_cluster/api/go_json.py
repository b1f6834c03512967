"""JSON as the real server reads it: what its parser says about a broken text, and which keys appear twice.

The fast reader of bodies.py is used for every request. This one reads a text a second time, letter by letter, when the
fast one failed (to word the error) or when it lost a key (to name it).
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from konverge_cluster.api.field_errors import quote

__all__ = ["MAX_DEPTH", "JsonSyntaxError", "duplicate_keys"]

# The real parser stops at 10,000. Every recursive step of this server takes a few frames of Python's stack, so it stops
# sooner; the text is the same.
MAX_DEPTH: Final = 200

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]*')
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_LITERALS: Final = {"t": "true", "f": "false", "n": "null"}


class JsonSyntaxError(ValueError):
    """The text is no JSON; the message is the one of the real server's parser."""


def duplicate_keys(text: str) -> list[str]:
    """Return the paths of keys that appear again in their object, in the order of the text.

    Raises: JsonSyntaxError when the text is not JSON.
    """
    return _Scanner(text).run()


class _Level:
    """One open object or array: where it is, and what was seen in it."""

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
    """Reads one value without recursion: a stack of levels, and a method for each place in the grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._levels: list[_Level] = []
        self._found: list[str] = []

    def run(self) -> list[str]:
        self._value()
        while self._levels:
            level = self._levels[-1]
            if level.keys is None:
                self._after_element(level)
            else:
                self._after_member(level)
        self._skip()
        if self._at < len(self._text):
            self._fail("after top-level value")
        return self._found

    def _after_member(self, level: _Level) -> None:
        letter = self._peek()
        if letter == "}":
            self._close()
        elif letter == ",":
            self._at += 1
            self._member(level)
        else:
            self._fail("after object key:value pair")

    def _after_element(self, level: _Level) -> None:
        letter = self._peek()
        if letter == "]":
            self._close()
        elif letter == ",":
            self._at += 1
            level.index += 1
            self._value()
        else:
            self._fail("after array element")

    def _close(self) -> None:
        self._at += 1
        self._levels.pop()

    def _value(self) -> None:
        letter = self._peek()
        if letter in "{[":
            self._open(letter)
        elif letter == '"':
            self._string()
        elif letter in _LITERALS:
            self._literal(_LITERALS[letter])
        elif letter in "-0123456789":
            self._number()
        else:
            self._fail("looking for beginning of value")

    def _open(self, letter: str) -> None:
        if len(self._levels) >= MAX_DEPTH:
            self._fail("exceeded max depth")
        level = _Level(self._levels[-1].child_path() if self._levels else "", is_object=letter == "{")
        self._levels.append(level)
        self._at += 1
        following = self._peek()
        if following == ("}" if level.keys is not None else "]"):
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
            self._found.append(level.child_path())
        level.keys.add(level.key)
        if self._peek() != ":":
            self._fail("after object key")
        self._at += 1
        self._value()

    def _string(self) -> str:
        start = self._at
        self._at += 1
        while True:
            self._at = _PLAIN.match(self._text, self._at).end()  # type: ignore[union-attr]
            letter = self._letter()
            if letter == '"':
                self._at += 1
                return self._text[start + 1 : self._at - 1]
            if letter != "\\":
                self._fail("in string literal")
            self._escape()

    def _escape(self) -> None:
        self._at += 1
        letter = self._letter_or_space()
        if letter == "u":
            for _ in range(4):
                self._at += 1
                if self._letter_or_space() not in _HEX:
                    self._fail("in \\u hexadecimal character escape")
        elif letter not in 'bfnrt\\/"':
            self._fail("in string escape code")
        self._at += 1

    def _literal(self, word: str) -> None:
        for expected in word:
            if self._letter_or_space() != expected:
                self._fail(f"in literal {word} (expecting '{expected}')")
            self._at += 1

    def _number(self) -> None:
        matched = _NUMBER.match(self._text, self._at)
        if matched is None:
            self._at += 1
            self._fail("in numeric literal")
        self._at = matched.end()
        letter = self._text[self._at : self._at + 1]
        if letter == "." and matched[2] is None and matched[3] is None:
            self._at += 1
            self._fail("after decimal point in numeric literal")
        if letter and letter in "eE" and matched[3] is None:
            self._at += 2 if self._text[self._at + 1 : self._at + 2] in ("+", "-") else 1
            self._fail("in exponent of numeric literal")

    def _skip(self) -> None:
        self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]

    def _peek(self) -> str:
        self._skip()
        return self._letter()

    def _letter(self) -> str:
        if self._at >= len(self._text):
            raise JsonSyntaxError("unexpected end of JSON input")
        return self._text[self._at]

    def _letter_or_space(self) -> str:
        # At the end the real parser tries a space; where none may stand, that is what it complains of.
        return self._text[self._at] if self._at < len(self._text) else " "

    def _fail(self, context: str) -> NoReturn:
        letter = self._letter_or_space()
        shown = {"'": r"'\''", '"': "'\"'"}.get(letter) or f"'{quote(letter)[1:-1]}'"
        raise JsonSyntaxError(f"invalid character {shown} {context}")
