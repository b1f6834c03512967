"""Patterns mean the same here and on the server, or they are refused.

The server reads patterns as RE2; msgspec, which reads objects, as Python's `re`. The two share most of their syntax.
Rules of this file:

1. What RE2 lacks (lookaround, backreferences, possessive and atomic groups, conditionals) is refused.
2. What Python reads more narrowly than RE2 is refused too: an object that the server took must always be readable
   here. So no `\\b`, `\\D`, `\\W`, `\\S` and no `[^\\d]`, which Python takes for Unicode and RE2 for ASCII.
3. `matches` answers as the server does, with RE2: a search, `$` only at the very end, `\\d` and `\\w` in ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

__all__ = ["check_pattern", "matches"]

_TOKEN: Final = re.compile(r"\\.?|\[\^?\]?|\{,[0-9]*\}|--|&&|~~|\|\||.", re.DOTALL)
_POSITIVE: Final = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_NEGATIVE: Final = {name.upper(): f"[^{characters}]" for name, characters in _POSITIVE.items()}


def check_pattern(pattern: str) -> None:
    """Check that Python and the server read the pattern alike.

    Raises: ValueError that names the construct and says what to write.
    """
    for difference in _differences(pattern):
        raise ValueError(difference)
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    _compiled(pattern)


def matches(pattern: str, text: str) -> bool:
    """Tell whether the server would find the pattern in the text."""
    return _compiled(pattern).search(text) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Any:
    # Loaded with the first pattern: most programs that import this room have none.
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        lacks = "it has no lookaround, backreferences, possessive repeats or atomic groups"
        raise ValueError(f"RE2, which the server uses, does not read {pattern!r}: {said} ({lacks})") from None


def _differences(pattern: str) -> Iterator[str]:
    """Walk a pattern once and name what the two read differently."""
    inside = ""
    for match in _TOKEN.finditer(pattern):
        token = match[0]
        if token.startswith("\\"):
            yield from _escape_differences(token[1:], inside)
        elif inside:
            yield from _class_differences(token)
            inside = "" if token == "]" else inside
        elif token.startswith("["):
            inside = token
        elif token.startswith("{,"):
            yield f"RE2 takes {token!r} literally: write {{0{token[1:]}"


def _escape_differences(char: str, inside: str) -> Iterator[str]:
    if char in _NEGATIVE:
        yield f"Python and RE2 read \\{char} differently: write {_NEGATIVE[char]}"
    elif char in _POSITIVE and inside.startswith("[^"):
        yield f"Python and RE2 read [^\\{char}] differently: write [^{_POSITIVE[char]}]"
    elif char in ("b", "B"):
        yield f"Python and RE2 read \\{char} differently: write the characters on both sides"
    elif char.isdigit():
        yield f"RE2 has no backreferences or octal escapes (\\{char}): write the text again"


def _class_differences(token: str) -> Iterator[str]:
    if token.startswith("["):
        yield "Python and RE2 read '[' inside brackets differently: write \\["
    elif token in ("--", "&&", "~~", "||"):
        yield f"Python reads {token!r} inside brackets as an operation on sets: escape the second character"
