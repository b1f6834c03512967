"""Values that expressions work on, as far as Python has no type of its own for them.

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

# Asked with `in`, which is quick for a plain int only: a UInt is looked for item by item.
INT: Final = range(-(2**63), 2**63)


class EvaluationError(Exception):
    """An expression that has no value for this object; the message is the server's."""


def no_overload() -> EvaluationError:
    """Say that no function takes values of these types."""
    return EvaluationError("no such overload")


class UInt(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in nanoseconds."""

    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A moment in nanoseconds since 1970, UTC; `east` is the offset in seconds of the clock that it was read from."""

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
        """The value.

        Raises: EvaluationError when there is none.
        """
        if not self.has_value:
            raise EvaluationError("optional.none() dereference")
        return self._value


NONE: Final = Optional(has_value=False)


class SetList(list[Any]):
    """A list of which the order does not count."""


class MapList(list[Any]):
    """A list of objects that are told apart by keys; the order does not count."""

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys


_NUMBERS: Final = (int, float)


def _is_number(value: Any) -> bool:
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def equal(one: Any, other: Any) -> bool:
    """Tell whether two values are equal; numbers are compared across their types, nothing else is."""
    if type(one) is type(other) and not isinstance(one, (list, dict)):
        if isinstance(one, Optional):
            return one.has_value == other.has_value and (not one.has_value or equal(one.value, other.value))
        return bool(one == other)
    if isinstance(one, list) and isinstance(other, list):
        return _equal_lists(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(key in other and equal(one[key], other[key]) for key in one)
    if not _is_number(one) or not _is_number(other):
        return False
    # An int is compared with a double as a double, large ones lose digits.
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
    """What tells an item of a `MapList` apart."""
    return tuple(repr(item.get(name)) for name in names)


def less(one: Any, other: Any) -> bool:
    """Tell whether one value comes before another.

    Raises: EvaluationError when the two have no order.
    """
    if _is_number(one) and _is_number(other):
        if type(one) is float or type(other) is float:
            return float(one) < float(other)
        return bool(one < other)
    if type(one) is not type(other) or not isinstance(one, (str, bytes, bool, Timestamp, Duration)):
        raise no_overload()
    # The server compares the bytes of texts; that is the order of their characters.
    return bool(one < other)
