"""The topology of a kind: how its values merge and how their fields are owned.

A `Node` defines the forms that a value may have: a scalar, a sequence (list), a mapping (struct or map), or several of
them where the schema allows it. Sequences and mappings are either atomic (owned and replaced as a whole) or granular. A
granular sequence identifies its items by keys (`x-kubernetes-list-type: map`) or by value (`set`).

A node is built from its schema on first use. So a kind with thousands of fields costs only what its objects use, and
recursive types are possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

__all__ = ["ABSENT", "DEDUCED", "UNTYPED", "Field", "MappingType", "Node", "SequenceType", "Topology"]

ABSENT: Any = object()
"""Marks a missing value; None is JSON's null, which is a value."""

Forms = tuple["str", "SequenceType | None", "MappingType | None"]


class Node:
    """The forms of one value: `scalar` ("" when it cannot be one), `sequence` and `mapping` (None likewise)."""

    __slots__ = ("_make", "mapping", "scalar", "sequence")

    scalar: str
    sequence: SequenceType | None
    mapping: MappingType | None

    def __init__(self, make: Callable[[], Forms]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for attributes that are not set: the first access builds all forms.
        if name not in ("scalar", "sequence", "mapping"):
            raise AttributeError(name)
        self.scalar, self.sequence, self.mapping = self._make()
        return getattr(self, name)

    def form_of(self, value: Any) -> str:
        """Return the form of the value: "scalar", "sequence", "mapping", or "any" if the value can be of any form."""
        if isinstance(value, dict):
            return "mapping" if self.mapping is not None else "any"
        if isinstance(value, list):
            return "sequence" if self.sequence is not None else "any"
        return "scalar" if value is not None and self.scalar else "any"

    @property
    def has_one_form(self) -> bool:
        """Whether the schema allows only one form."""
        return bool(self.scalar) + (self.sequence is not None) + (self.mapping is not None) == 1

    @property
    def first_form(self) -> str:
        """The form for a value that does not determine one, such as null."""
        if self.mapping is not None:
            return "mapping"
        return "scalar" if self.scalar else "sequence"


@dataclass(slots=True)
class Field:
    """A named field of a struct.

    `default` is used for missing keys of list items. `zero` returns the value in a new Go struct: ABSENT when the field
    is omitted; for a nested struct, its own zero value. `merge_key` and `strategies` are those of strategic merge.
    """

    node: Node
    default: Any = None
    zero: Callable[[], Any] = lambda: ABSENT
    merge_key: str = ""
    strategies: tuple[str, ...] = ()


@dataclass(slots=True)
class MappingType:
    """A struct (named `fields`), a map (every value is an `element`), or both. `name` is the Go name of a struct."""

    fields: Mapping[str, Field] = field(default_factory=dict)
    element: Node | None = None
    atomic: bool = False
    name: str = ""

    def child(self, key: str) -> Node:
        """Return the node of a key; DEDUCED for a key that the schema does not declare."""
        named = self.fields.get(key)
        if named is not None:
            return named.node
        return self.element or DEDUCED

    @property
    def is_open(self) -> bool:
        """Whether the schema specifies only that it is a map."""
        return not self.fields and self.element is DEDUCED


@dataclass(slots=True)
class SequenceType:
    """A list: atomic, or a map by `keys`, or (granular without keys) a set."""

    element: Node
    atomic: bool = True
    keys: tuple[str, ...] = ()

    def default_of(self, key: str) -> Any:
        """Return the default of a key of the items, None when there is none."""
        items = self.element.mapping
        named = items.fields.get(key) if items is not None else None
        return named.default if named is not None else None


UNTYPED: Node = Node(lambda: ("untyped", SequenceType(UNTYPED), MappingType(element=UNTYPED, atomic=True)))
"""Any value, owned as a whole."""

DEDUCED: Node = Node(lambda: ("untyped", SequenceType(UNTYPED), MappingType(element=DEDUCED)))
"""Any value: lists are atomic, maps granular."""


@dataclass(frozen=True)
class Topology:
    """One version of one kind.

    `structured` kinds (the built-in ones) are Go structs: the content of a new struct counts as present before the
    first write, so no manager owns `.spec` itself. Custom resources are `structured=False`.
    """

    root: Node
    structured: bool = False

    @cached_property
    def zero(self) -> dict[str, Any]:
        """The object before its first write."""
        return zero_of(self.root) if self.structured else {}


def zero_of(node: Node) -> dict[str, Any]:
    """Return a new Go struct in JSON."""
    values = {name: f.zero() for name, f in node.mapping.fields.items()} if node.mapping is not None else {}
    return {name: value for name, value in values.items() if value is not ABSENT}
