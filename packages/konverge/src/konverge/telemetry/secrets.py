"""Texts of others without what looks like a secret in them.

Messages of konverge itself never hold one. What an author's code raises, or a library that it uses, may quote a header,
a URL or a key; such a text goes through here before it is kept or shown. This is a net, not a wall: a secret that looks
like any other word passes.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["without_secrets"]

_HIDDEN: Final = "<hidden>"
_LONGEST: Final = 20_000  # nobody reads more, and patterns should not have to

_ANY_CASE: Final = re.IGNORECASE
_NAMES: Final = (
    "password|passwd|pwd|secret|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key|client[_-]?secret|credentials?"
)
_PATTERNS: Final = (
    # Keys in PEM, whole or cut off
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), _HIDDEN),
    # Authorization: Bearer ..., Basic ...
    (re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}", _ANY_CASE), rf"\1 {_HIDDEN}"),
    # JSON web tokens, wherever they stand
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(\.[A-Za-z0-9_-]*)?"), _HIDDEN),
    # scheme://user:password@host
    (re.compile(r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)"), _HIDDEN),
    # password=..., "token": "...", api-key: ...
    (
        re.compile(rf"""(?P<name>(?:{_NAMES})["']?\s*[=:]\s*)(?:"[^"]*"|'[^']*'|[^\s,;&}})\]]+)""", _ANY_CASE),
        rf"\g<name>{_HIDDEN}",
    ),
)


def without_secrets(text: str) -> str:
    """Give a text in which keys, tokens, passwords and credentials in URLs are hidden."""
    text = text[:_LONGEST]
    for pattern, shown in _PATTERNS:
        text = pattern.sub(shown, text)
    return text
