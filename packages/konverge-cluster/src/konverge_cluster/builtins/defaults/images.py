"""Parsing of image names, as far as the default pull policy needs it: tag, digest, and whether the name is valid."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["pull_policy"]

_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])"
_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME: Final = re.compile(
    rf"(?:{_DOMAIN}(?::[0-9]+)?/)?{_PART}(?:/{_PART})*(?::(?P<tag>\w[\w.-]{{0,127}}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_IDENTIFIER: Final = re.compile("[a-f0-9]{64}")


def pull_policy(image: str) -> str:
    """Return Always for the tag "latest" and for a name without tag and digest, IfNotPresent otherwise."""
    match = None if _IDENTIFIER.fullmatch(image) else _NAME.fullmatch(image)
    if match is None:
        return "IfNotPresent"
    is_latest = match["tag"] == "latest" or (match["tag"] is None and match["digest"] is None)
    return "Always" if is_latest else "IfNotPresent"
