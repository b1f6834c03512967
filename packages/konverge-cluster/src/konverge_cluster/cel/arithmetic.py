"""Operators on numbers, texts, lists and times, with the errors of 64-bit integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from konverge_cluster.cel.times import moment
from konverge_cluster.cel.values import INT, Duration, EvaluationError, Timestamp, UInt, equal, less

__all__ = ["add", "compare", "divide", "modulo", "multiply", "negate", "subtract", "within", "within_duration"]


def within(value: int) -> int:
    """An int that fits into 64 bits.

    Raises: EvaluationError.
    """
    if value not in INT:
        raise EvaluationError("integer overflow")
    return value


def within_unsigned(value: int) -> UInt:
    if not 0 <= value < 2**64:
        raise EvaluationError("unsigned integer overflow")
    return UInt(value)


def within_duration(nanos: int) -> Duration:
    if nanos not in INT:
        raise EvaluationError("duration overflow")
    return Duration(nanos)


def _numeric(operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(one: Any, other: Any) -> Any:
        value = operate(one, other)
        if isinstance(one, UInt):
            return within_unsigned(value)
        return within(value) if isinstance(one, int) else value

    return apply


_plus = _numeric(lambda one, other: one + other)
_minus = _numeric(lambda one, other: one - other)
multiply = _numeric(lambda one, other: one * other)


def add(one: Any, other: Any) -> Any:
    if isinstance(one, (int, float)):
        return _plus(one, other)
    if isinstance(one, Duration):
        return within_duration(one.nanos + other.nanos) if isinstance(other, Duration) else add(other, one)
    if isinstance(one, Timestamp):
        return moment(one.nanos + other.nanos, one.east)
    return [*one, *other] if isinstance(one, list) else one + other


def subtract(one: Any, other: Any) -> Any:
    if isinstance(one, (int, float)):
        return _minus(one, other)
    if isinstance(one, Timestamp) and isinstance(other, Duration):
        return moment(one.nanos - other.nanos, one.east)
    return within_duration(one.nanos - other.nanos)


def divide(one: Any, other: Any) -> Any:
    if isinstance(one, float):
        if other == 0:
            return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)
        return one / other
    if other == 0:
        raise EvaluationError("division by zero")
    # Towards zero, as Go divides.
    quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
    return within_unsigned(quotient) if isinstance(one, UInt) else within(quotient)


def modulo(one: Any, other: Any) -> Any:
    if other == 0:
        raise EvaluationError("modulus by zero")
    rest = int(math.fmod(one, other)) if abs(one) < 2**53 and abs(other) < 2**53 else one - other * divide(one, other)
    return UInt(rest) if isinstance(one, UInt) else rest


def negate(value: Any) -> Any:
    return within(-value) if isinstance(value, int) else -value


def compare(operator: str) -> Callable[[Any, Any], bool]:
    """The function of `<`, `<=`, `>` or `>=`."""
    if operator == "<":
        return less
    if operator == ">":
        return lambda one, other: less(other, one)
    if operator == "<=":
        return lambda one, other: less(one, other) or equal(one, other)
    return lambda one, other: less(other, one) or equal(one, other)
