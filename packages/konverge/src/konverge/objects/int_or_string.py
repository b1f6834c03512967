"""Fields that hold a number or a text: ports by number or name, amounts as count or percentage.

On the wire such a field is a JSON number or a JSON string, so its Python type is simply `int | str`.
"""

from __future__ import annotations

import re
from typing import TypeAlias

__all__ = ["IntOrString", "is_percent", "percent_errors", "scaled"]

IntOrString: TypeAlias = int | str

_PERCENT = re.compile(r"[0-9]+%", re.ASCII)
_SIGNED_PERCENT = re.compile(r"[+-]?[0-9]+%", re.ASCII)


def is_percent(value: IntOrString) -> bool:
    """Tell whether the value is a percentage such as "25%"."""
    return isinstance(value, str) and not percent_errors(value)


def percent_errors(value: str) -> list[str]:
    """Return what the server has against this percentage, in its words; an empty list when it is fine."""
    if _PERCENT.fullmatch(value):
        return []
    return [
        "a valid percent string must be a numeric string followed by an ending '%' "
        "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
    ]


def scaled(value: IntOrString, total: int, *, round_up: bool) -> int:
    """Return the count that `value` means: itself when a number, that share of `total` when a percentage.

    The share is computed in integers, so it is exact for every total. A Deployment rounds `maxSurge` up and
    `maxUnavailable` down.

    Raises: ValueError for a text that is no percentage.
    """
    if isinstance(value, int):
        return value
    if not _SIGNED_PERCENT.fullmatch(value):
        raise ValueError(f"{value!r} is neither a number nor a percentage: write 3 or '25%'")
    share = int(value[:-1]) * total
    return -(-share // 100) if round_up else share // 100
