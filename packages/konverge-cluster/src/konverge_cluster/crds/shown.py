"""Values of custom resources as the server prints them: keys sorted, whole numbers without a fraction.

What the server stores has passed through its printer too: `2.0` comes back as `2`, and an integer of more than 64 bits
as a float.
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge_cluster.cel.go_floats import go_float
from konverge_cluster.crds.numbers import INT64

__all__ = ["shown", "stored_numbers"]

_LEAST, _MOST = INT64[0], INT64[-1]

_encode = msgspec.json.Encoder(order="deterministic").encode


def shown(value: Any) -> Any:
    """A value for the text of a problem."""
    if isinstance(value, float):
        return msgspec.Raw(go_float(value).encode())
    if isinstance(value, (dict, list)):
        return msgspec.Raw(_encode(stored_numbers(value)))
    return value


def stored_numbers(value: Any) -> Any:
    """The same value with the numbers that come back from the server's storage; shared where nothing changes."""
    kind = type(value)
    if kind is dict:
        for each in value.values():
            if type(each) is str:
                continue
            number = stored_numbers(each)
            if number is not each:
                return {name: stored_numbers(item) for name, item in value.items()}
    elif kind is list:
        for each in value:
            if type(each) is not str and stored_numbers(each) is not each:
                return [stored_numbers(item) for item in value]
    elif kind is float:
        return int(value) if value.is_integer() and abs(value) < 1e18 else value
    elif kind is int and not _LEAST <= value <= _MOST:
        return float(value)
    return value
