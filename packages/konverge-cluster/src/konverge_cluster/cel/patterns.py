"""Regular expressions as in the server: RE2, searched for anywhere in the text, in linear time.

RE2 and the server's Go library are two implementations of one language. Patterns that only RE2 accepts
are rejected here; error messages are Go's.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

__all__ = ["PatternError", "compile_pattern", "matches", "pattern_error"]

_SHORT: Final = 256
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_GO_TEXTS: Final = {
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "unexpected )",
}


class PatternError(ValueError):
    """The server does not accept the pattern; the message is Go's."""


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """Compile a pattern; the result has `search`.

    Raises: PatternError.
    """
    for match in _ESCAPE.finditer(pattern):
        if match[1] == "C":
            raise PatternError("error parsing regexp: invalid escape sequence: `\\C`")
    # Imported with the first pattern: many clusters have none.
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise PatternError(_go_text(error.args[0])) from None


def _go_text(text: str | bytes) -> str:
    message = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    for re2_text, go_text in _GO_TEXTS.items():
        if message.startswith(re2_text):
            return f"error parsing regexp: {go_text}: `{message[len(re2_text) :].removeprefix(': ')}`"
    what, _, where = message.partition(": ")
    return f"error parsing regexp: {what}: `{where}`"


def pattern_error(pattern: str) -> str:
    """Return the error of a pattern, "" if it is valid."""
    try:
        compile_pattern(pattern)
    except PatternError as error:
        return str(error)
    return ""


def matches(pattern: str, text: str) -> bool:
    """Report whether a pattern matches anywhere in a text. Results for short texts are cached: they repeat often."""
    return _remembered(pattern, text) if len(text) <= _SHORT else _search(pattern, text)


def _search(pattern: str, text: str) -> bool:
    return compile_pattern(pattern).search(text) is not None


_remembered = lru_cache(maxsize=8192)(_search)
