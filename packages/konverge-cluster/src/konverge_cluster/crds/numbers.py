"""Bounds and multiples of numbers, with the messages of the real server.

The server compares integers with the integer part of a bound. It first checks whether value and bound are in the range
of the type; if not, the error has a message of its own, without a field.
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

AddError = Callable[[Any, str], None]
"""Receives the value and the message of an error; a value of None means an error without a field."""


def is_whole(value: float) -> bool:
    """Report whether a float counts as an integer."""
    if not math.isfinite(value) or abs(value) > _MOST_EXACT:
        return False
    nearest = float(int(value))
    if value == nearest:
        return True
    if value == 0 or nearest == 0:
        return False
    return abs(value - nearest) / (abs(value) + abs(nearest)) < _EPSILON


def plain_bounds(schema: Mapping[str, Any], number_format: str) -> tuple[int, int]:
    """Return the first and the last integer that are certainly valid; an empty range if a full check is needed."""
    minimum, maximum = schema.get("minimum"), schema.get("maximum")
    limits = _INT32 if number_format == "int32" else INT64
    odd = any(bound is not None and (bound != int(bound) or int(bound) not in limits) for bound in (minimum, maximum))
    if odd or number_format == "float" or schema.get("multipleOf") is not None:
        return 1, 0
    low = limits[0] if minimum is None else int(minimum) + (schema.get("exclusiveMinimum") is True)
    high = limits[-1] if maximum is None else int(maximum) - (schema.get("exclusiveMaximum") is True)
    return low, high


def compile_number(
    schema: Mapping[str, Any], number_format: str, number: type
) -> Callable[[Any, str, AddError], None] | None:
    """Return the check of an integer (int) or another number (float); None if any number is valid.

    The check receives the value and the name of its field.
    """
    kind = schema.get("type", "") if not schema.get("x-kubernetes-int-or-string") else ""
    minimum, maximum, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    bounded = number_format in ("float", "int32") or (kind == "integer" and number is float)
    if minimum is None and maximum is None and step is None and not bounded:
        return None
    exclusive_minimum, exclusive_maximum = (
        schema.get("exclusiveMinimum") is True,
        schema.get("exclusiveMaximum") is True,
    )
    suffix = f"{kind} with format {number_format}" if number_format else f"{kind} (default format)"

    def check_type(number: Any, what: str, name: str, add_error: AddError) -> None:
        if not _is_in_range(number, kind, number_format):
            add_error(None, f"{what} value must be of type {suffix} in {name}")

    def check(value: Any, name: str, add_error: AddError) -> None:
        if bounded:
            check_type(value, "Checked", name, add_error)
        if step is not None:
            check_type(step, "MultipleOf", name, add_error)
            _check_step(value, step, name, add_error)
        if minimum is not None:
            check_type(minimum, "Minimum boundary", name, add_error)
            _check_least(value, minimum, exclusive_minimum, name, add_error)
        if maximum is not None:
            check_type(maximum, "Maximum boundary", name, add_error)
            _check_most(value, maximum, exclusive_maximum, name, add_error)

    return check


def _is_in_range(number: Any, kind: str, number_format: str) -> bool:
    if kind == "integer":
        whole = isinstance(number, int) or (math.isfinite(number) and number == int(number))
        return whole and int(number) in (_INT32 if number_format == "int32" else INT64)
    return number_format != "float" or abs(number) < _FLOAT32_MAX


def _comparable(value: Any, bound: Any) -> Any:
    return int(bound) if isinstance(value, int) else float(bound)


def _check_step(value: Any, step: Any, name: str, add_error: AddError) -> None:
    factor = _comparable(value, step)
    if factor <= 0:
        add_error(factor, f"factor MultipleOf declared for {name} must be positive: {go_float(factor)}")
        return
    if isinstance(value, int):
        check_type = value % factor == 0
    else:
        check_type = is_whole(1 / factor * value if factor < 1 else value / factor)
    if not check_type:
        add_error(value, f"{name} in body should be a multiple of {go_float(factor)}")


def _check_least(value: Any, minimum: Any, exclusive: bool, name: str, add_error: AddError) -> None:
    bound = _comparable(value, minimum)
    if value < bound or (exclusive and value == bound):
        words = "greater than" if exclusive else "greater than or equal to"
        add_error(value, f"{name} in body should be {words} {go_float(bound)}")


def _check_most(value: Any, maximum: Any, exclusive: bool, name: str, add_error: AddError) -> None:
    bound = _comparable(value, maximum)
    if value > bound or (exclusive and value == bound):
        words = "less than" if exclusive else "less than or equal to"
        add_error(value, f"{name} in body should be {words} {go_float(bound)}")
