"""What a value is made of, as far as ownership and merging go.

A `Node` says which forms a value may take: a scalar, a sequence (list), a mapping (struct or map), or several of them
where the schema leaves it open. Sequences and mappings are either atomic (owned and replaced as a whole) or granular.
A granular sequence knows its items by keys (`x-kubernetes-list-type: map`) or by value (`set`).

Nodes are made from a schema when they are first asked, so that a kind with thousands of fields costs only what its
objects use, and types that contain themselves have an end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

__all__ = ["ABSENT", "DEDUCED", "UNTYPED", "Field", "MappingType", "Node", "SequenceType", "Topology"]

ABSENT: Any = object()
"""Stands where there is no value; None is JSON's null, which is one."""

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
        # Python asks here only for what is not set yet: the first look at a form makes all of them.
        if name not in ("scalar", "sequence", "mapping"):
            raise AttributeError(name)
        self.scalar, self.sequence, self.mapping = self._make()
        return getattr(self, name)

    def form_of(self, value: Any) -> str:
        """Name the form that the value takes: "scalar", "sequence", "mapping", or "any" where it decides nothing."""
        if isinstance(value, dict):
            return "mapping" if self.mapping is not None else "any"
        if isinstance(value, list):
            return "sequence" if self.sequence is not None else "any"
        return "scalar" if value is not None and self.scalar else "any"

    @property
    def has_one_form(self) -> bool:
        """Tell whether the schema leaves no choice."""
        return bool(self.scalar) + (self.sequence is not None) + (self.mapping is not None) == 1

    @property
    def first_form(self) -> str:
        """Name the form that counts where the value decides nothing, as null does."""
        if self.mapping is not None:
            return "mapping"
        return "scalar" if self.scalar else "sequence"


@dataclass(slots=True)
class Field:
    """A named field of a struct.

    `default` completes missing keys of list items. `zero` is what a fresh Go struct holds there: ABSENT when the field
    is left out, a nested struct is the struct's own zero. `merge_key` and `strategies` are those of strategic merge.
    """

    node: Node
    default: Any = None
    zero: Callable[[], Any] = lambda: ABSENT
    merge_key: str = ""
    strategies: tuple[str, ...] = ()


@dataclass(slots=True)
class MappingType:
    """A struct (named `fields`), a map (every key an `element`), or a mixture. `name` is the Go name of a struct."""

    fields: Mapping[str, Field] = field(default_factory=dict)
    element: Node | None = None
    atomic: bool = False
    name: str = ""

    def child(self, key: str) -> Node:
        """Give the node of a key; what the schema does not declare is deduced from its value."""
        named = self.fields.get(key)
        if named is not None:
            return named.node
        return self.element or DEDUCED

    @property
    def is_open(self) -> bool:
        """Tell whether all that is known of it is that it is a map."""
        return not self.fields and self.element is DEDUCED


@dataclass(slots=True)
class SequenceType:
    """A list: atomic, or a map by `keys`, or (granular without keys) a set."""

    element: Node
    atomic: bool = True
    keys: tuple[str, ...] = ()

    def default_of(self, key: str) -> Any:
        """Give the default of a key of the items, None when it has none."""
        items = self.element.mapping
        named = items.fields.get(key) if items is not None else None
        return named.default if named is not None else None


UNTYPED: Node = Node(lambda: ("untyped", SequenceType(UNTYPED), MappingType(element=UNTYPED, atomic=True)))
"""Anything at all, owned as a whole."""

DEDUCED: Node = Node(lambda: ("untyped", SequenceType(UNTYPED), MappingType(element=DEDUCED)))
"""Anything at all: lists are atomic, maps granular."""


@dataclass(frozen=True)
class Topology:
    """One version of one kind.

    `structured` kinds pass through Go structs (the built-in ones): what a fresh struct holds counts as there before
    the first write, so nobody owns `.spec` itself. Custom resources are `structured=False`.
    """

    root: Node
    structured: bool = False

    @cached_property
    def zero(self) -> dict[str, Any]:
        """The object before its first write."""
        return zero_of(self.root) if self.structured else {}


def zero_of(node: Node) -> dict[str, Any]:
    """Make what a fresh Go struct looks like in JSON."""
    made = {name: f.zero() for name, f in node.mapping.fields.items()} if node.mapping is not None else {}
    return {name: value for name, value in made.items() if value is not ABSENT}
