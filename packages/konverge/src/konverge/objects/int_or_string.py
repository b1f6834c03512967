"""Fields with a number or a string: ports by number or name, amounts as count or percentage.

The wire form is a JSON number or a JSON string, so the Python type is `int | str`.
"""

from __future__ import annotations

import re
from typing import TypeAlias

__all__ = ["IntOrString", "is_percent", "percent_errors", "scaled"]

IntOrString: TypeAlias = int | str

_PERCENT = re.compile(r"[0-9]+%", re.ASCII)
_SIGNED_PERCENT = re.compile(r"[+-]?[0-9]+%", re.ASCII)


def is_percent(value: IntOrString) -> bool:
    """Report whether the value is a percentage such as "25%"."""
    return isinstance(value, str) and not percent_errors(value)


def percent_errors(value: str) -> list[str]:
    """Return the validation errors of the server for this percentage, an empty list if it is valid."""
    if _PERCENT.fullmatch(value):
        return []
    return [
        "a valid percent string must be a numeric string followed by an ending '%' "
        "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
    ]


def scaled(value: IntOrString, total: int, *, round_up: bool) -> int:
    """Return the count for `value`: the number itself, or the percentage of `total`.

    The percentage is computed in integers, so the result is exact for every total. A Deployment rounds `maxSurge` up
    and `maxUnavailable` down.

    Raises: ValueError for a string that is not a percentage.
    """
    if isinstance(value, int):
        return value
    if not _SIGNED_PERCENT.fullmatch(value):
        raise ValueError(f"{value!r} is neither a number nor a percentage (write 3 or '25%')")
    hundredths = int(value[:-1]) * total
    return -(-hundredths // 100) if round_up else hundredths // 100
