"""Patterns mean the same here and on the server, or they are refused.

The server reads patterns as RE2, Python as `re`. The two share most of their syntax, and differ in the rest, sometimes
in meaning only. Rules of this file:

1. What RE2 lacks (lookaround, backreferences, possessive and atomic groups, conditionals) is refused.
2. What one of them reads differently is refused too, when it would make Python stricter than the server: an object that
   the server took must always be readable here. So no `\\b`, `\\D`, `\\W`, `\\S`, and no `[^\\d]`.
3. `matches` answers as the server does: a search, `$` only at the very end, `\\d`, `\\w` and `\\s` in ASCII.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["check_pattern", "matches"]

_CLASSES: Final = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_SAME_ESCAPES: Final = frozenset("AaftnrvxdwsZ")
_NEGATED: Final = {"D": "[^0-9]", "W": "[^0-9A-Za-z_]", "S": r"[^\t\n\f\r ]"}
_GROUP: Final = re.compile(r"\(\?(?:P<[A-Za-z_][A-Za-z0-9_]*>|:|(?:[ims]+|[ims]*-[ims]+):|[ims]+\))")
_REPEAT: Final = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}")
_MOST_REPEATS: Final = 1000


class _Reader:
    """Walks a pattern once: refuses what differs, and writes what Python must search for to answer as RE2 does."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.place = 0
        self.written: list[str] = []

    def read(self) -> str:
        while self.place < len(self.pattern):
            self._step(self.pattern[self.place])
        return "".join(self.written)

    def _step(self, char: str) -> None:
        if char == "\\":
            self._escape(negated_class=None)
        elif char == "[":
            self._class()
        elif char == "(":
            self._group()
        elif char == "{":
            self._repeat()
        elif char in "*+?":
            self._take(1)
            self._no_second_repeat()
        else:
            # RE2 reads "$" as the very end; Python's also matches before a last newline.
            self._take(1, r"\Z" if char == "$" and not self._multiline() else None)

    def _take(self, length: int, instead: str | None = None) -> None:
        text = self.pattern[self.place : self.place + length]
        self.written.append(text if instead is None else instead)
        self.place += length

    def _multiline(self) -> bool:
        return re.search(r"\(\?[is]*m", self.pattern) is not None

    def _escape(self, *, negated_class: bool | None) -> None:
        """Read one escape; `negated_class` is None outside of brackets."""
        char = self.pattern[self.place + 1 : self.place + 2]
        if char in _NEGATED:
            raise ValueError(f"Python and RE2 read \\{char} differently: write {_NEGATED[char]}")
        if char in ("b", "B"):
            raise ValueError(f"Python and RE2 read \\{char} differently: write the characters on both sides")
        if char == "Z":
            raise ValueError("RE2 has no \\Z: write $")
        if char.isdigit():
            raise ValueError(f"RE2 has no backreferences or octal escapes (\\{char}): write the text again, or \\x00")
        if char.isalnum() and char not in _SAME_ESCAPES:
            raise ValueError(f"Python and RE2 do not share \\{char}: write the character itself, or \\x00")
        if char == "x" and not re.fullmatch("[0-9a-fA-F]{2}", self.pattern[self.place + 2 : self.place + 4]):
            raise ValueError("Python and RE2 share \\x only with two hexadecimal digits: write the character itself")
        if char in _CLASSES:
            if negated_class:
                raise ValueError(f"Python and RE2 read [^\\{char}] differently: write [^{_CLASSES[char]}]")
            self._take(2, f"[{_CLASSES[char]}]" if negated_class is None else _CLASSES[char])
        else:
            self._take(2)

    def _class(self) -> None:
        negated = self.pattern[self.place + 1 : self.place + 2] == "^"
        self._take(2 if negated else 1)
        first = True
        while self.place < len(self.pattern):
            char = self.pattern[self.place]
            if char == "]" and not first:
                self._take(1)
                return
            if char == "\\":
                self._escape(negated_class=negated)
            elif char == "[":
                raise ValueError("Python and RE2 read '[' inside brackets differently: write \\[")
            else:
                self._no_set_operation()
                self._take(1)
            first = False

    def _no_set_operation(self) -> None:
        pair = self.pattern[self.place : self.place + 2]
        if pair in ("--", "&&", "~~", "||"):
            raise ValueError(f"Python warns about {pair!r} inside brackets: escape the second character")

    def _group(self) -> None:
        if self.pattern[self.place + 1 : self.place + 2] != "?":
            self._take(1)
            return
        match = _GROUP.match(self.pattern, self.place)
        if match is None:
            shown = self.pattern[self.place : self.place + 4]
            raise ValueError(
                f"RE2 has no group {shown!r}: lookaround, backreferences, atomic groups and comments are out"
            )
        self._take(len(match[0]))

    def _repeat(self) -> None:
        match = _REPEAT.match(self.pattern, self.place)
        if match is None:
            self._take(1)
            return
        least, comma, most = match.groups()
        if not least and (comma or most):
            raise ValueError(f"RE2 takes {match[0]!r} literally: write {{0,{most}}}")
        if max(int(least or 0), int(most or 0)) > _MOST_REPEATS:
            raise ValueError(f"RE2 repeats at most {_MOST_REPEATS} times: use max_length for the length")
        self._take(len(match[0]))
        self._no_second_repeat()

    def _no_second_repeat(self) -> None:
        if self.pattern[self.place : self.place + 1] == "?":
            self._take(1)
        if self.pattern[self.place : self.place + 1] in ("*", "+", "?"):
            raise ValueError("RE2 has no possessive repeats and no repeat of a repeat: put the inner one into (?:...)")


def check_pattern(pattern: str) -> None:
    """Check that Python and the server read the pattern alike.

    Raises: ValueError that names the construct and says what to write.
    """
    _compiled(pattern)


def matches(pattern: str, text: str) -> bool:
    """Tell whether the server would find the pattern in the text."""
    return _compiled(pattern).search(text) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    translated = _Reader(pattern).read()
    try:
        return re.compile(translated)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
