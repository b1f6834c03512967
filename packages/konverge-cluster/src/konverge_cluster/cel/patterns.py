"""Regular expressions as the server reads them: RE2, searched for anywhere in the text, in linear time.

The C++ library and the server's Go library are two implementations of one language. What the C++ one takes and Go does
not is refused here; the texts of errors are Go's.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

__all__ = ["PatternFault", "compile_pattern", "matches", "pattern_error"]

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


class PatternFault(ValueError):
    """The pattern is none that the server reads; the message is Go's."""


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """Compile a pattern; the result has `search`.

    Raises: PatternFault.
    """
    for match in _ESCAPE.finditer(pattern):
        if match[1] == "C":
            raise PatternFault("error parsing regexp: invalid escape sequence: `\\C`")
    # Loaded with the first pattern: a cluster may never see one.
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise PatternFault(_go_text(error.args[0])) from None


def _go_text(text: str | bytes) -> str:
    said = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    for theirs, gos in _GO_TEXTS.items():
        if said.startswith(theirs):
            return f"error parsing regexp: {gos}: `{said[len(theirs) :].removeprefix(': ')}`"
    what, _, where = said.partition(": ")
    return f"error parsing regexp: {what}: `{where}`"


def pattern_error(pattern: str) -> str:
    """Say what is wrong with a pattern, "" when nothing is."""
    try:
        compile_pattern(pattern)
    except PatternFault as fault:
        return str(fault)
    return ""


def matches(pattern: str, text: str) -> bool:
    """Tell whether the pattern is found in the text. Short texts repeat themselves a lot, so answers are kept."""
    return _remembered(pattern, text) if len(text) <= _SHORT else _search(pattern, text)


def _search(pattern: str, text: str) -> bool:
    return compile_pattern(pattern).search(text) is not None


_remembered = lru_cache(maxsize=8192)(_search)
