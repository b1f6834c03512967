"""The function library: overloads and their implementations.

A function has overloads, each with its parameter and result types and a Python function. If the types are known
at compile time, the matching overload is called directly; if they are not (`dyn`), the overload
is selected by the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from konverge_cluster.cel.types import BOOL, Type, param, type_of
from konverge_cluster.cel.values import Duration, EvaluationError, Optional, Timestamp, UInt

__all__ = ["Function", "Library", "Overload", "accepts", "can_parse", "go_name", "order", "runtime_type"]


@dataclass(frozen=True, slots=True)
class Overload:
    """One overload of a function; the first parameter of a `member` is the receiver."""

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
        created = Overload(overload, tuple(params), result, member, call)
        self.functions.setdefault(name, Function(name, [])).overloads.append(created)

    def method(self, name: str, overload: str, params: Iterable[Type], result: Type, call: Callable[..., Any]) -> None:
        """Add an overload with a receiver."""
        self.add(name, overload, params, result, call, member=True)

    def test(self, name: str, overload: str, params: Iterable[Type], call: Callable[..., Any]) -> None:
        """Add an overload with a receiver that returns a bool."""
        self.add(name, overload, params, BOOL, call, member=True)

    def constant(self, name: str, kind: Type) -> None:
        """Add the name of a type, so that expressions can compare with it."""
        self.constants[name] = (type_of(kind), Type(kind.kind, kind.name))


def can_parse(read: Callable[..., Any]) -> Callable[..., bool]:
    """Return a predicate that reports whether a parser accepts its arguments."""

    def check(*values: Any) -> bool:
        try:
            read(*values)
        except (ValueError, EvaluationError):
            return False
        return True

    return check


def order(one: Any, other: Any) -> int:
    """Return -1, 0 or 1 if one value is less than, equal to or greater than the other."""
    return int(one > other) - int(one < other)


A = param("A")
B = param("B")


def runtime_type(value: Any) -> Type:
    """Return the type of a value, as far as the value alone determines it."""
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
    """Return the Go type name of a value in the real server."""
    return runtime_type(value).kind.capitalize()


def accepts(kind: Type, value: Any) -> bool:
    """Report whether a parameter of a type accepts a value; the items of lists and maps are not checked."""
    if kind.kind in ("param", "dyn"):
        return True
    found = runtime_type(value)
    if kind.kind in ("opaque", "struct"):
        return found.name == kind.name
    return found.kind == kind.kind
