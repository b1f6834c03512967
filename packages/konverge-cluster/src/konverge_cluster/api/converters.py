"""What the server says about a value of the wrong type in a strategic merge patch.

Such a patch does not pass through the JSON reader: its result is put into the Go struct by a converter, which has its
own words for the same mistakes.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["converter_text"]

_JSON_FAULT: Final = re.compile(
    r"json: cannot unmarshal (\w+)(?: \S+)? into Go (?:struct field \S+|value) of type (\S+)"
)
_FOUND: Final = {"array": "slice", "object": "map", "string": "string", "bool": "bool", "number": "int64"}
_NUMBERS: Final = ("int32", "int64", "float64")


def converter_text(text: str) -> str:
    """Turn what the JSON reader says into what the converter says; other texts stay."""
    fault = _JSON_FAULT.fullmatch(text)
    if fault is None:
        return f"error decoding from json: {text}" if text.startswith("illegal base64") else text
    found, wanted = _FOUND[fault[1]], fault[2]
    if wanted.startswith("map["):
        return f"cannot restore map from {found}"
    if wanted.startswith("[]"):
        return f"cannot restore slice from {found}"
    if wanted in ("string", "bool", *_NUMBERS):
        return _plain_text(text, found, wanted)
    # A named type is a struct, unless an object does not fit: then it is a named string.
    return "unrecognized type: string" if found == "map" else f"cannot restore struct from: {found}"


def _plain_text(text: str, found: str, wanted: str) -> str:
    if found == "int64" and wanted == "string":
        return "cannot convert int64 to string"
    if found == "int64" and wanted in _NUMBERS:
        # Only a number with decimals, or one that is too large, does not fit.
        return f"cannot convert {'float64' if '.' in text.split(' into ')[0] else 'int64'} to {wanted}"
    return f"unrecognized type: {wanted}"
