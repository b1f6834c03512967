"""Expressions as trees. Every node knows where in the text it is said, for messages.

Macros (`has`, `all`, `map`, ...) are gone when a tree is complete: loops are `Comprehension` nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = [
    "Call",
    "Comprehension",
    "Ident",
    "ListNode",
    "Literal",
    "MapNode",
    "Message",
    "Node",
    "Select",
    "Struct",
    "qualified_name",
]


@dataclass(slots=True, eq=False)
class Literal:
    """A constant; `value` is the value itself."""

    at: int
    value: Any


@dataclass(slots=True, eq=False)
class Ident:
    at: int
    name: str


@dataclass(slots=True, eq=False)
class Select:
    """`operand.field`; with `test` it only asks whether the field is there."""

    at: int
    operand: Node
    field: str
    test: bool = False


@dataclass(slots=True, eq=False)
class Call:
    """A function, an operator (`_+_`) or an index (`_[_]`); `target` is what stands before the dot."""

    at: int
    function: str
    args: list[Node]
    target: Node | None = None


@dataclass(slots=True, eq=False)
class ListNode:
    """`[a, ?b]`; `optional` are the indices of elements that may be absent."""

    at: int
    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapNode:
    """`{k: v, ?k: v}`; each entry is key, value, whether it may be absent."""

    at: int
    entries: list[tuple[Node, Node, bool]]


@dataclass(slots=True, eq=False)
class Struct:
    """`Type{field: value}`."""

    at: int
    name: str
    fields: list[tuple[str, Node, bool]]


@dataclass(slots=True, eq=False)
class Comprehension:
    """A loop: `accumulator` starts as `init`, and becomes `step` for every item while `condition` holds.

    `second` is the second loop variable, "" when there is one only. A `bind` loops over nothing: it names a value.
    """

    at: int
    variable: str
    second: str
    range: Node
    accumulator: str
    init: Node
    condition: Node
    step: Node
    result: Node


Node: TypeAlias = Literal | Ident | Select | Call | ListNode | MapNode | Struct | Comprehension


@dataclass(slots=True)
class Message:
    """Something that is wrong with a text: where, and what."""

    at: int
    text: str


def qualified_name(node: Node) -> str:
    """The dotted name that an expression might be, such as `optional.none`; "" when it is none."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test:
        prefix = qualified_name(node.operand)
        return f"{prefix}.{node.field}" if prefix else ""
    return ""
