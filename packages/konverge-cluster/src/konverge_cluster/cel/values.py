"""Values of expressions that have no Python type of their own.

| CEL | Python |
|---|---|
| int, uint | int, `UInt` |
| double, bool, string, bytes, null | float, bool, str, bytes, None |
| list, map, object | list, dict, dict with escaped keys |
| timestamp, duration | `Timestamp`, `Duration` |
| optional_type | `Optional` |
| type | `konverge_cluster.cel.types.Type` |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

__all__ = [
    "INT",
    "NONE",
    "Duration",
    "EvaluationError",
    "MapList",
    "Optional",
    "SetList",
    "Timestamp",
    "UInt",
    "equal",
    "key_of",
    "less",
    "no_overload",
]

# Tested with `in`, which is fast for a plain int only: a UInt is compared item by item.
INT: Final = range(-(2**63), 2**63)


class EvaluationError(Exception):
    """An expression has no value for this object; the message is the server's."""


def no_overload() -> EvaluationError:
    """Return the error that no overload accepts these types."""
    return EvaluationError("no such overload")


class UInt(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A duration in nanoseconds."""

    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A time in nanoseconds since 1970, UTC; `east` is the UTC offset, in seconds, that it was parsed with."""

    nanos: int
    east: int = field(default=0, compare=False)


class Optional:
    """A value that may be absent."""

    __slots__ = ("_value", "has_value")

    def __init__(self, value: Any = None, *, has_value: bool = True) -> None:
        self._value = value
        self.has_value = has_value

    @property
    def value(self) -> Any:
        """Return the value.

        Raises: EvaluationError when there is none.
        """
        if not self.has_value:
            raise EvaluationError("optional.none() dereference")
        return self._value


NONE: Final = Optional(has_value=False)


class SetList(list[Any]):
    """A list whose order is irrelevant."""


class MapList(list[Any]):
    """A list of objects with keys; its order is irrelevant."""

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys


_NUMBERS: Final = (int, float)


def _is_number(value: Any) -> bool:
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def equal(one: Any, other: Any) -> bool:
    """Report whether two values are equal; only numbers are compared across types."""
    if type(one) is type(other) and not isinstance(one, (list, dict)):
        if isinstance(one, Optional):
            return one.has_value == other.has_value and (not one.has_value or equal(one.value, other.value))
        return bool(one == other)
    if isinstance(one, list) and isinstance(other, list):
        return _equal_lists(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(key in other and equal(one[key], other[key]) for key in one)
    return _is_number(one) and _is_number(other) and _equal_numbers(one, other)


def _equal_numbers(one: Any, other: Any) -> bool:
    # An int is compared with a double as a double; large ones lose precision.
    return float(one) == float(other) if type(one) is float or type(other) is float else bool(one == other)


def _equal_lists(one: list[Any], other: list[Any]) -> bool:
    if len(one) != len(other):
        return False
    if isinstance(one, SetList):
        return all(any(equal(each, item) for item in other) for each in one)
    if isinstance(one, MapList):
        return _equal_by_keys(one, other)
    return all(map(equal, one, other))


def _equal_by_keys(one: MapList, other: list[Any]) -> bool:
    by_key = {key_of(item, one.keys): item for item in other if isinstance(item, dict)}
    return all(equal(item, by_key.get(key_of(item, one.keys))) for item in one)


def key_of(item: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the key of an item of a `MapList`."""
    return tuple(repr(item.get(name)) for name in names)


def less(one: Any, other: Any) -> bool:
    """Report whether one value is less than another.

    Raises: EvaluationError when the two have no order.
    """
    if _is_number(one) and _is_number(other):
        if type(one) is float or type(other) is float:
            return float(one) < float(other)
        return bool(one < other)
    if type(one) is not type(other) or not isinstance(one, (str, bytes, bool, Timestamp, Duration)):
        raise no_overload()
    # The server compares the bytes of strings; that is the order of their characters.
    return bool(one < other)
