"""Syntax trees. Every node has its position in the text, for messages.

A complete tree has no macros (`has`, `all`, `map`, ...): loops are `Comprehension` nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

__all__ = [
    "NOWHERE",
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
    "children_of",
    "depth_of",
    "qualified_name",
]

NOWHERE: Final = -1
"""The position of a message about a whole text."""


@dataclass(slots=True, eq=False)
class Literal:
    """A literal; `value` is the value itself."""

    at: int
    value: Any


@dataclass(slots=True, eq=False)
class Ident:
    at: int
    name: str


@dataclass(slots=True, eq=False)
class Select:
    """`operand.field`; with `test` a presence test."""

    at: int
    operand: Node
    field: str
    test: bool = False


@dataclass(slots=True, eq=False)
class Call:
    """A function, an operator (`_+_`) or an index (`_[_]`); `target` is the receiver."""

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

    `second` is the second loop variable, "" if there is only one. A `bind` loops over an empty range: it names a value.
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
    """An error in a text: position and message."""

    at: int
    text: str


def qualified_name(node: Node) -> str:
    """Return the dotted name that an expression may be, such as `optional.none`; "" if it is none."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test:
        prefix = qualified_name(node.operand)
        return f"{prefix}.{node.field}" if prefix else ""
    return ""


def children_of(node: Node) -> list[Node]:
    """Return the nodes directly below a node."""
    if isinstance(node, Call):
        return [node.target, *node.args] if node.target is not None else node.args
    if isinstance(node, Select):
        return [node.operand]
    if isinstance(node, ListNode):
        return node.elements
    if isinstance(node, MapNode):
        return [part for key, value, _ in node.entries for part in (key, value)]
    if isinstance(node, Struct):
        return [value for _, value, _ in node.fields]
    if isinstance(node, Comprehension):
        return [node.range, node.init, node.condition, node.step, node.result]
    return []


def depth_of(node: Node) -> int:
    """Return how deep a tree is; a single node has depth 1. Not recursive: a tree may be deeper than Python's stack."""
    level, depth = [node], 0
    while level:
        level = [child for each in level for child in children_of(each)]
        depth += 1
    return depth
