"""Functions that expressions may call: their overloads, and what carries them out.

A function has overloads: for each, the types that it takes and gives, and a Python function. Where the types are known
when an expression is compiled, the one overload that fits is called directly; where they are not (`dyn`), the overload
is chosen by the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from konverge_cluster.cel.types import BOOL, Type, param, type_of
from konverge_cluster.cel.values import Duration, EvaluationError, Optional, Timestamp, UInt

__all__ = ["Function", "Library", "Overload", "accepts", "go_name", "order", "reads", "runtime_type"]


@dataclass(frozen=True, slots=True)
class Overload:
    """One form of a function; of a `member` the first parameter stands before the dot."""

    id: str
    params: tuple[Type, ...]
    result: Type
    member: bool
    call: Callable[..., Any]


@dataclass(slots=True)
class Function:
    name: str
    overloads: list[Overload]


class Library:
    """Functions and constants by name."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self.constants: dict[str, tuple[Type, Any]] = {}

    def add(
        self,
        name: str,
        overload: str,
        params: Iterable[Type],
        result: Type,
        call: Callable[..., Any],
        *,
        member: bool = False,
    ) -> None:
        """Add an overload of a function."""
        made = Overload(overload, tuple(params), result, member, call)
        self.functions.setdefault(name, Function(name, [])).overloads.append(made)

    def method(self, name: str, overload: str, params: Iterable[Type], result: Type, call: Callable[..., Any]) -> None:
        """Add an overload that is called on a value."""
        self.add(name, overload, params, result, call, member=True)

    def test(self, name: str, overload: str, params: Iterable[Type], call: Callable[..., Any]) -> None:
        """Add an overload that is called on a value and says yes or no."""
        self.add(name, overload, params, BOOL, call, member=True)

    def constant(self, name: str, kind: Type) -> None:
        """Name a type, so that expressions can compare with it."""
        self.constants[name] = (type_of(kind), Type(kind.kind, kind.name))


def reads(read: Callable[..., Any]) -> Callable[..., bool]:
    """Make the question whether something can be read out of what reads it."""

    def check(*values: Any) -> bool:
        try:
            read(*values)
        except (ValueError, EvaluationError):
            return False
        return True

    return check


def order(one: Any, other: Any) -> int:
    """-1, 0 or 1, as one value is less than, equal to or greater than the other."""
    return int(one > other) - int(one < other)


A = param("A")
B = param("B")


def runtime_type(value: Any) -> Type:
    """The type of a value, as far as the value alone tells it."""
    for kind, named in _RUNTIME:
        if isinstance(value, kind):
            return named
    found: Type = getattr(value, "cel_type", None) or Type("dyn")
    return found


_RUNTIME: list[tuple[type, Type]] = [
    (bool, Type("bool")),
    (UInt, Type("uint")),
    (int, Type("int")),
    (float, Type("double")),
    (str, Type("string")),
    (bytes, Type("bytes")),
    (list, Type("list", "list")),
    (dict, Type("map", "map")),
    (type(None), Type("null")),
    (Timestamp, Type("timestamp", "timestamp")),
    (Duration, Type("duration", "duration")),
    (Optional, Type("opaque", "optional_type")),
    (Type, Type("type", "type")),
]


def go_name(value: Any) -> str:
    """The name that the server's own code has for the type of a value."""
    return runtime_type(value).kind.capitalize()


def accepts(kind: Type, value: Any) -> bool:
    """Tell whether a value can be handed to a parameter of a type; what is inside lists and maps is not looked at."""
    if kind.kind in ("param", "dyn"):
        return True
    found = runtime_type(value)
    if kind.kind in ("opaque", "struct"):
        return found.name == kind.name
    return found.kind == kind.kind
