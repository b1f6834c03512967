"""Validation of literals beyond their types: invalid patterns, timestamps and durations, lists of mixed types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from konverge_cluster.cel.checker import Checked
from konverge_cluster.cel.patterns import pattern_error
from konverge_cluster.cel.string_format import FormatVerb, parse_format, verb_error
from konverge_cluster.cel.syntax import (
    Call,
    ListNode,
    Literal,
    MapNode,
    Message,
    Node,
    children_of,
)
from konverge_cluster.cel.times import SECOND, new_timestamp, parse_duration, parse_timestamp
from konverge_cluster.cel.types import Type, unwrap_optional
from konverge_cluster.cel.values import EvaluationError

__all__ = ["literal_messages"]


def literal_messages(node: Node, checked: Checked) -> list[Message]:
    """Return messages about the literals of an expression whose types are valid."""
    return [message for each, exempt in _walk(node, False) for message in _node_messages(each, checked, exempt)]


def _walk(node: Node, exempt: bool) -> Iterator[tuple[Node, bool]]:
    """Yield every node, and whether it is inside a call of `format`, where lists may mix types."""
    yield node, exempt
    exempt = exempt or (isinstance(node, Call) and node.function == "format")
    for child in children_of(node):
        yield from _walk(child, exempt)


def _node_messages(node: Node, checked: Checked, exempt: bool) -> Iterator[Message]:
    if isinstance(node, Call):
        yield from _call_messages(node)
        if node.function == "format":
            yield from _format_messages(node, checked)
    elif isinstance(node, ListNode) and not exempt:
        kinds = [_inner(checked.types[each], index in node.optional) for index, each in enumerate(node.elements)]
        yield from _mixed(node.elements, kinds)
    elif isinstance(node, MapNode) and not exempt:
        keys = [key for key, _, _ in node.entries]
        values = [value for _, value, _ in node.entries]
        yield from _mixed(keys, [checked.types[key] for key in keys])
        yield from _mixed(values, [_inner(checked.types[each], optional) for _, each, optional in node.entries])


def _inner(kind: Type, optional: bool) -> Type:
    return unwrap_optional(kind)[0] if optional else kind


def _mixed(nodes: list[Node], kinds: list[Type]) -> Iterator[Message]:
    for node, kind in zip(nodes[1:], kinds[1:], strict=True):
        if kind != kinds[0]:
            yield Message(node.at, f"expected type '{kinds[0]}' but found '{kind}'")
            return


def _is_duration(text: str) -> bool:
    return _is_parsed_by(parse_duration, text)


def _is_timestamp_in_range(seconds: int) -> bool:
    try:
        new_timestamp(seconds * SECOND)
    except EvaluationError:
        return False
    return True


def _is_timestamp(text: str) -> bool:
    return _is_parsed_by(parse_timestamp, text)


def _is_pattern(text: str) -> bool:
    return not pattern_error(text)


def _is_parsed_by(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


_CHECKED: Final[dict[str, Callable[[str], bool]]] = {
    "duration": _is_duration,
    "timestamp": _is_timestamp,
    "matches": _is_pattern,
}


def _call_messages(node: Call) -> Iterator[Message]:
    is_fine = _CHECKED.get(node.function)
    if is_fine is None or not node.args:
        return
    argument = node.args[-1]
    if not isinstance(argument, Literal):
        return
    late = node.function == "timestamp" and type(argument.value) is int and not _is_timestamp_in_range(argument.value)
    if late or (isinstance(argument.value, str) and not is_fine(argument.value)):
        yield Message(argument.at, f"invalid {node.function} argument")


def _format_messages(node: Call, checked: Checked) -> Iterator[Message]:
    text, values = node.target, node.args[0]
    if not isinstance(text, Literal) or not isinstance(text.value, str) or not isinstance(values, ListNode):
        return
    try:
        clauses = [piece for piece in parse_format(text.value) if isinstance(piece, FormatVerb)]
    except EvaluationError as error:
        yield Message(node.at, str(error))
        return
    for index, verb in enumerate(clauses):
        if index >= len(values.elements):
            yield Message(node.at, f"index {index} out of range")
            return
        value = values.elements[index]
        problem = verb_error(verb, checked.types[value])
        if problem:
            yield Message(value.at, f"error during formatting: {problem}")
            return
    if len(values.elements) > len(clauses):
        counts = f"(expected {len(clauses)}, got {len(values.elements)})"
        yield Message(node.at, f"too many arguments supplied to string.format {counts}")
