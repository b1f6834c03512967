"""Types of expressions, their form in messages, and assignability.

Type parameters are placeholders of types that the checker infers; `Bindings` has the inferred types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = [
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DURATION",
    "DYN",
    "ERROR",
    "INT",
    "NULL",
    "STRING",
    "TIMESTAMP",
    "UINT",
    "Bindings",
    "Type",
    "common_type",
    "list_of",
    "map_of",
    "opaque",
    "optional_of",
    "param",
    "struct",
    "type_of",
    "unwrap_optional",
]


@dataclass(frozen=True, slots=True)
class Type:
    """A type. `kind` is its form, `name` distinguishes objects and opaque types, `params` are the types inside."""

    kind: str
    name: str = ""
    params: tuple[Type, ...] = ()
    fields: Mapping[str, Type] | None = field(default=None, compare=False, hash=False, repr=False)

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.params))
        if self.kind in ("list", "map", "type"):
            return f"{self.kind}({inner})" if inner else self.kind
        if self.kind == "opaque":
            return f"{self.name}({inner})" if inner else self.name
        if self.kind == "error":
            return "!error!"
        return self.name or self.kind

    @property
    def is_dyn(self) -> bool:
        return self.kind == "dyn"

    @property
    def is_open(self) -> bool:
        """Whether it is compatible with every type: it is unknown, or an error was reported already."""
        return self.kind in ("dyn", "error")


BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type("null")
DYN: Final = Type("dyn")
ERROR: Final = Type("error")
TIMESTAMP: Final = Type("timestamp", "timestamp")
DURATION: Final = Type("duration", "duration")


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def type_of(inner: Type) -> Type:
    return Type("type", "type", (inner,))


def optional_of(inner: Type) -> Type:
    return Type("opaque", "optional_type", (inner,))


def opaque(name: str) -> Type:
    return Type("opaque", name)


def struct(name: str, fields: Mapping[str, Type] | None = None) -> Type:
    """Return an object type; without fields it is accessible only to functions."""
    return Type("struct", name, (), fields if fields is not None else {})


def param(name: str) -> Type:
    return Type("param", name)


def unwrap_optional(kind: Type) -> tuple[Type, bool]:
    """Return the type inside an optional one, and whether it was optional."""
    if kind.kind == "opaque" and kind.name == "optional_type":
        return kind.params[0], True
    return kind, False


def common_type(one: Type, other: Type) -> Type:
    """Return the wider of two compatible types."""
    return one if _is_wider(one, other) else other


def _is_wider(one: Type, other: Type) -> bool:
    if one.is_dyn or one.kind == "param":
        return True
    if other.is_dyn or other.kind == "param" or one.kind != other.kind:
        return False
    if one.kind in ("opaque", "list", "map"):
        same_shape = one.name == other.name and len(one.params) == len(other.params)
        return same_shape and all(map(_is_wider, one.params, other.params))
    return one.kind == "type" or one == other


class Bindings:
    """The inferred types of type parameters.

    `match` may bind parameters; if it returns False, nothing is bound.
    """

    def __init__(self, bound: dict[Type, Type] | None = None) -> None:
        self._bound: dict[Type, Type] = bound if bound is not None else {}

    def match(self, ones: tuple[Type, ...] | list[Type], others: tuple[Type, ...] | list[Type]) -> bool:
        """Report whether each type is assignable to the one at the same position of the other list."""
        if len(ones) != len(others):
            return False
        attempt = Bindings(dict(self._bound))
        if all(attempt._fit(one, other) for one, other in zip(ones, others, strict=True)):
            self._bound = attempt._bound
            return True
        return False

    def resolve(self, kind: Type, *, to_dyn: bool = False) -> Type:
        """Return a type with bound parameters replaced; with `to_dyn` the others become dyn."""
        found = self._bound.get(kind)
        if found is not None:
            return self.resolve(found, to_dyn=to_dyn)
        if kind.kind == "param":
            return DYN if to_dyn else kind
        if not kind.params:
            return kind
        inner = tuple(self.resolve(each, to_dyn=to_dyn) for each in kind.params)
        return Type(kind.kind, kind.name, inner, kind.fields)

    def _fit(self, one: Type, other: Type) -> bool:
        if other.kind == "param":
            valid, known = self._substitute(one, other)
            if valid or known:
                return valid
        if one.kind == "param":
            return self._substitute(other, one)[0]
        if one.is_open or other.is_open:
            return True
        if one.kind == "null" or other.kind == "null":
            return _takes_null(other) if one.kind == "null" else _takes_null(one)
        if one.kind in ("opaque", "list", "map"):
            same_form = one.kind == other.kind and one.name == other.name and len(one.params) == len(other.params)
            return same_form and all(map(self._fit, one.params, other.params))
        return one.kind == other.kind if one.kind == "type" else one == other

    def _substitute(self, kind: Type, variable: Type) -> tuple[bool, bool]:
        """Try a type for a parameter; return whether it matches, and whether the parameter was bound before."""
        if kind == variable:
            return True, True
        known = self._bound.get(variable)
        if known is not None:
            if kind == known:
                return True, True
            if not self._fit(kind, known):
                return False, True
            wider = common_type(kind, known)
            if not self._occurs(variable, wider):
                self._bound[variable] = wider
            return True, True
        if self._occurs(variable, kind):
            return False, False
        self._bound[variable] = kind
        return True, False

    def _occurs(self, variable: Type, kind: Type) -> bool:
        if variable == kind:
            return True
        if kind.kind == "param":
            found = self._bound.get(kind)
            return found is not None and self._occurs(variable, found)
        return any(self._occurs(variable, each) for each in kind.params)


def _takes_null(kind: Type) -> bool:
    return kind.kind in ("opaque", "struct", "duration", "timestamp", "null")
