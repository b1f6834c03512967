"""Removal of secrets from texts of other code.

Konverge's own messages never contain a secret. A text that a reconciler or a library raises may quote a header, a URL
or a key; it passes through here before it is stored or shown. This is a safety net and not a guarantee: a secret that
looks like an ordinary word is not found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["without_secret_data", "without_secrets"]

_HIDDEN: Final = "<hidden>"
_MAX_LENGTH: Final = 20_000  # bounds the time that the patterns take

_MAX_DEPTH: Final = 8

_ANY_CASE: Final = re.IGNORECASE
_NAMES: Final = (
    "password|passwd|pwd|secret|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key|client[_-]?secret|credentials?"
)
_PATTERNS: Final = (
    # Keys in PEM, complete or truncated
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), _HIDDEN),
    # Authorization: Bearer ..., Basic ...
    (re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}", _ANY_CASE), rf"\1 {_HIDDEN}"),
    # JSON web tokens anywhere
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
    """Return a text in which keys, tokens, passwords and credentials in URLs are hidden."""
    text = text[:_MAX_LENGTH]
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def without_secret_data(value: Any, depth: int = _MAX_DEPTH) -> Any:
    """Return JSON values in which the data of Secrets is hidden; any other value unchanged."""
    sequence = type(value)
    if not isinstance(value, dict) and sequence not in (list, tuple):  # a named tuple has a repr of its own
        return value
    if depth == 0:
        return "..."
    if not isinstance(value, dict):
        return sequence(without_secret_data(item, depth - 1) for item in value)
    if value.get("kind") == "Secret":
        return {"kind": "Secret", "metadata": _names(value.get("metadata"))}
    return {name: without_secret_data(item, depth - 1) for name, item in value.items()}


def _names(metadata: Any) -> dict[str, Any]:
    # Annotations may quote the data: kubectl's last-applied-configuration does.
    known = metadata if isinstance(metadata, Mapping) else {}
    return {name: known[name] for name in ("namespace", "name") if name in known}
