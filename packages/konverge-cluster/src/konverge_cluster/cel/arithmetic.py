"""Operators on numbers, strings, lists and times, with the overflow errors of 64-bit integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from konverge_cluster.cel.times import new_timestamp
from konverge_cluster.cel.values import INT, Duration, EvaluationError, Timestamp, UInt, equal, less

__all__ = ["add", "check_duration", "check_int", "compare", "divide", "mod", "multiply", "neg", "subtract"]


def check_int(value: int) -> int:
    """Return an int that fits into 64 bits.

    Raises: EvaluationError.
    """
    if value not in INT:
        raise EvaluationError("integer overflow")
    return value


def check_uint(value: int) -> UInt:
    if not 0 <= value < 2**64:
        raise EvaluationError("unsigned integer overflow")
    return UInt(value)


def check_duration(nanos: int) -> Duration:
    if nanos not in INT:
        raise EvaluationError("duration overflow")
    return Duration(nanos)


def _numeric(operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(one: Any, other: Any) -> Any:
        value = operate(one, other)
        if isinstance(one, UInt):
            return check_uint(value)
        return check_int(value) if isinstance(one, int) else value

    return apply


_plus = _numeric(lambda one, other: one + other)
_minus = _numeric(lambda one, other: one - other)
multiply = _numeric(lambda one, other: one * other)


def add(one: Any, other: Any) -> Any:
    if isinstance(one, (int, float)):
        return _plus(one, other)
    if isinstance(one, Duration):
        return check_duration(one.nanos + other.nanos) if isinstance(other, Duration) else add(other, one)
    if isinstance(one, Timestamp):
        return new_timestamp(one.nanos + other.nanos, one.east)
    return [*one, *other] if isinstance(one, list) else one + other


def subtract(one: Any, other: Any) -> Any:
    if isinstance(one, (int, float)):
        return _minus(one, other)
    if isinstance(one, Timestamp) and isinstance(other, Duration):
        return new_timestamp(one.nanos - other.nanos, one.east)
    return check_duration(one.nanos - other.nanos)


def divide(one: Any, other: Any) -> Any:
    if isinstance(one, float):
        if other == 0:
            return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)
        return one / other
    if other == 0:
        raise EvaluationError("division by zero")
    # Rounds towards zero, as in Go.
    quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
    return check_uint(quotient) if isinstance(one, UInt) else check_int(quotient)


def mod(one: Any, other: Any) -> Any:
    if other == 0:
        raise EvaluationError("modulus by zero")
    rest = int(math.fmod(one, other)) if abs(one) < 2**53 and abs(other) < 2**53 else one - other * divide(one, other)
    return UInt(rest) if isinstance(one, UInt) else rest


def neg(value: Any) -> Any:
    return check_int(-value) if isinstance(value, int) else -value


def compare(operator: str) -> Callable[[Any, Any], bool]:
    """Return the function of `<`, `<=`, `>` or `>=`."""
    if operator == "<":
        return less
    if operator == ">":
        return lambda one, other: less(other, one)
    if operator == "<=":
        return lambda one, other: less(one, other) or equal(one, other)
    return lambda one, other: less(other, one) or equal(one, other)
