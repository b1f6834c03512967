"""Bounds and multiples of numbers, in the server's words.

The server compares whole numbers with the whole part of a bound, and checks first whether value and bound fit the type
at all; what does not fit has a text of its own, without a field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from konverge_cluster.cel.go_floats import go_float

__all__ = ["INT64", "compile_number", "is_whole", "plain_bounds"]

INT64: Final = range(-(2**63), 2**63)
_INT32: Final = range(-(2**31), 2**31)
_MOST_EXACT: Final = 2**53 - 1
_EPSILON: Final = 1e-9
_FLOAT32_MAX: Final = 3.4028235677973366e38

Say = Callable[[Any, str], None]
"""Takes the value and the text of one problem; a value of None means a problem without a field."""


def is_whole(value: float) -> bool:
    """Tell whether a float counts as an integer."""
    if not math.isfinite(value) or abs(value) > _MOST_EXACT:
        return False
    nearest = float(int(value))
    if value == nearest:
        return True
    if value == 0 or nearest == 0:
        return False
    return abs(value - nearest) / (abs(value) + abs(nearest)) < _EPSILON


def plain_bounds(schema: Mapping[str, Any], number_format: str) -> tuple[int, int]:
    """The whole numbers, from the first to the last, that certainly fit; an empty range when it takes a closer look."""
    least, most = schema.get("minimum"), schema.get("maximum")
    limits = _INT32 if number_format == "int32" else INT64
    odd = any(bound is not None and (bound != int(bound) or int(bound) not in limits) for bound in (least, most))
    if odd or number_format == "float" or schema.get("multipleOf") is not None:
        return 1, 0
    low = limits[0] if least is None else int(least) + (schema.get("exclusiveMinimum") is True)
    high = limits[-1] if most is None else int(most) - (schema.get("exclusiveMaximum") is True)
    return low, high


def compile_number(
    schema: Mapping[str, Any], number_format: str, number: type
) -> Callable[[Any, str, Say], None] | None:
    """Make the check of a number, whole (int) or not (float); None when any number will do.

    The check is given the value and the name of its field.
    """
    kind = schema.get("type", "") if not schema.get("x-kubernetes-int-or-string") else ""
    least, most, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    bounded = number_format in ("float", "int32") or (kind == "integer" and number is float)
    if least is None and most is None and step is None and not bounded:
        return None
    below, above = schema.get("exclusiveMinimum") is True, schema.get("exclusiveMaximum") is True
    suffix = f"{kind} with format {number_format}" if number_format else f"{kind} (default format)"

    def fits(number: Any, what: str, name: str, say: Say) -> None:
        if not _fits(number, kind, number_format):
            say(None, f"{what} value must be of type {suffix} in {name}")

    def check(value: Any, name: str, say: Say) -> None:
        if bounded:
            fits(value, "Checked", name, say)
        if step is not None:
            fits(step, "MultipleOf", name, say)
            _check_step(value, step, name, say)
        if least is not None:
            fits(least, "Minimum boundary", name, say)
            _check_least(value, least, below, name, say)
        if most is not None:
            fits(most, "Maximum boundary", name, say)
            _check_most(value, most, above, name, say)

    return check


def _fits(number: Any, kind: str, number_format: str) -> bool:
    if kind == "integer":
        whole = isinstance(number, int) or (math.isfinite(number) and number == int(number))
        return whole and int(number) in (_INT32 if number_format == "int32" else INT64)
    return number_format != "float" or abs(number) < _FLOAT32_MAX


def _comparable(value: Any, bound: Any) -> Any:
    return int(bound) if isinstance(value, int) else float(bound)


def _check_step(value: Any, step: Any, name: str, say: Say) -> None:
    factor = _comparable(value, step)
    if factor <= 0:
        say(factor, f"factor MultipleOf declared for {name} must be positive: {go_float(factor)}")
        return
    if isinstance(value, int):
        fits = value % factor == 0
    else:
        fits = is_whole(1 / factor * value if factor < 1 else value / factor)
    if not fits:
        say(value, f"{name} in body should be a multiple of {go_float(factor)}")


def _check_least(value: Any, least: Any, exclusive: bool, name: str, say: Say) -> None:
    bound = _comparable(value, least)
    if value < bound or (exclusive and value == bound):
        words = "greater than" if exclusive else "greater than or equal to"
        say(value, f"{name} in body should be {words} {go_float(bound)}")


def _check_most(value: Any, most: Any, exclusive: bool, name: str, say: Say) -> None:
    bound = _comparable(value, most)
    if value > bound or (exclusive and value == bound):
        words = "less than" if exclusive else "less than or equal to"
        say(value, f"{name} in body should be {words} {go_float(bound)}")
