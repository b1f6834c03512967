"""Patterns that mean the same in Python and on the server; others are refused.

The server uses RE2. msgspec, which decodes objects, uses Python's `re`. The two share most of their syntax. Rules of
this file:

1. Constructs that RE2 lacks (lookaround, backreferences, possessive and atomic groups, conditionals) are refused.
2. Constructs that match less in Python than in RE2 are refused too: every object that the server accepted must decode
   here. So `\\b`, `\\D`, `\\W`, `\\S` and `[^\\d]` are refused, which are Unicode in Python and ASCII in RE2.
3. `matches` behaves like the server, with RE2: a search, `$` only at the very end, `\\d` and `\\w` in ASCII.
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
    """Check that the pattern means the same in Python and on the server.

    Raises: ValueError that names the construct and what to write instead.
    """
    for difference in _differences(pattern):
        raise ValueError(difference)
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
    _compiled(pattern)


def matches(pattern: str, text: str) -> bool:
    """Report whether the pattern matches the text on the server."""
    return _compiled(pattern).search(text) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Any:
    # Imported with the first pattern, because most programs have none.
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        message = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        hint = "it has no lookaround, backreferences, possessive repeats or atomic groups"
        raise ValueError(f"RE2, which the server uses, rejects {pattern!r}: {message} ({hint})") from None


def _differences(pattern: str) -> Iterator[str]:
    """Yield a message for each construct that Python and RE2 interpret differently."""
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
            yield f"RE2 matches {token!r} literally: write {{0{token[1:]}"


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
