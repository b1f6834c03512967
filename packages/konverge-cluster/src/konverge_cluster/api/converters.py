"""Error texts for values of the wrong type in a strategic merge patch.

The real server does not decode the result of such a patch as JSON. It converts it into the Go struct with another
converter, which words the same errors differently.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["converter_text"]

_UNMARSHAL_ERROR: Final = re.compile(
    r"json: cannot unmarshal (\w+)(?: \S+)? into Go (?:struct field \S+|value) of type (\S+)"
)
_GO_KINDS: Final = {"array": "slice", "object": "map", "string": "string", "bool": "bool", "number": "int64"}
_NUMBERS: Final = ("int32", "int64", "float64")


def converter_text(text: str) -> str:
    """Return the converter's text for an error text of the JSON decoder; other texts are returned unchanged."""
    error = _UNMARSHAL_ERROR.fullmatch(text)
    if error is None:
        return f"error decoding from json: {text}" if text.startswith("illegal base64") else text
    source, target = _GO_KINDS[error[1]], error[2]
    if target.startswith("map["):
        return f"cannot restore map from {source}"
    if target.startswith("[]"):
        return f"cannot restore slice from {source}"
    if target in ("string", "bool", *_NUMBERS):
        return _scalar_text(text, source, target)
    # A named type is a struct. If the value is an object and does not fit, the named type is a string type.
    return "unrecognized type: string" if source == "map" else f"cannot restore struct from: {source}"


def _scalar_text(text: str, source: str, target: str) -> str:
    if source == "int64" and target == "string":
        return "cannot convert int64 to string"
    if source == "int64" and target in _NUMBERS:
        # Among numbers only one with decimals, or one that is too large, does not fit.
        return f"cannot convert {'float64' if '.' in text.split(' into ')[0] else 'int64'} to {target}"
    return f"unrecognized type: {target}"
