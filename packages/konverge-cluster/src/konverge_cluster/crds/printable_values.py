"""Values of custom resources as the server prints them: keys sorted, integers without a fraction.

Stored values are printed the same way: `2.0` is read back as `2`, and an integer of more than 64 bits
as a float.
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge_cluster.cel.go_floats import go_float
from konverge_cluster.crds.numbers import INT64

__all__ = ["normalize_numbers", "printable_value"]

_LEAST, _MOST = INT64[0], INT64[-1]

_encode = msgspec.json.Encoder(order="deterministic").encode


def printable_value(value: Any) -> Any:
    """Return a value in the form that error messages print."""
    if isinstance(value, float):
        return msgspec.Raw(go_float(value).encode())
    if isinstance(value, (dict, list)):
        return msgspec.Raw(_encode(normalize_numbers(value)))
    return value


def normalize_numbers(value: Any) -> Any:
    """Return a value with its numbers as the server stores them; shared if nothing changes."""
    kind = type(value)
    if kind is dict:
        for each in value.values():
            if type(each) is str:
                continue
            number = normalize_numbers(each)
            if number is not each:
                return {name: normalize_numbers(item) for name, item in value.items()}
    elif kind is list:
        for each in value:
            if type(each) is not str and normalize_numbers(each) is not each:
                return [normalize_numbers(item) for item in value]
    elif kind is float:
        return int(value) if value.is_integer() and abs(value) < 1e18 else value
    elif kind is int and not _LEAST <= value <= _MOST:
        return float(value)
    return value
