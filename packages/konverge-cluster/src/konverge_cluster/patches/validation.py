"""Check that a value fits its topology, with the texts of the real server.

The schema's own checks (required, patterns, limits) are not here: this is what merging needs, no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge_cluster.patches.elements import Unreadable, item_element, text_of
from konverge_cluster.patches.go_text import kind_of, literal, plain
from konverge_cluster.patches.topology import MappingType, Node, SequenceType

__all__ = ["Misfit", "validate"]


class Misfit(ValueError):
    """A value that does not fit its topology; the text names the path."""


Problem = tuple[str, str]
"""(path, what is wrong there)"""


def validate(node: Node, value: Any, *, allow_duplicates: bool = False) -> None:
    """Check a whole value.

    Raises: Misfit that lists everything that is wrong.
    """
    problems = [f"{path}: {text}" if path else text for path, text in _problems(node, value, allow_duplicates)]
    if len(problems) == 1:
        raise Misfit(problems[0])
    if problems:
        raise Misfit("\n".join(["errors:", *(f"  {problem}" for problem in problems)]))


def _problems(node: Node, value: Any, allow_duplicates: bool) -> Iterator[Problem]:
    if value is None:
        return
    form = node.form_of(value)
    form = node.first_form if form == "any" else form
    if form == "mapping" and node.mapping is not None:
        if not isinstance(value, dict):
            yield "", f"expected map, got &{{{plain(value)}}}"
        else:
            yield from _problems_of_map(node.mapping, value, allow_duplicates)
    elif form == "sequence" and node.sequence is not None:
        if not isinstance(value, list):
            yield "", f"expected list, got &{{{plain(value)}}}"
        else:
            yield from _problems_of_list(node.sequence, value, allow_duplicates)
    else:
        yield from _problems_of_scalar(node.scalar, value)


def _problems_of_scalar(scalar: str, value: Any) -> Iterator[Problem]:
    if scalar == "numeric" and (isinstance(value, bool) or not isinstance(value, int | float)):
        yield "", f"expected numeric (int or float), got {kind_of(value)}"
    elif scalar == "string" and not isinstance(value, str):
        yield "", f"expected string, got &value.valueUnstructured{{Value:{literal(value)}}}"
    elif scalar == "boolean" and not isinstance(value, bool):
        yield "", f"expected boolean, got &{{{plain(value)}}}"
    elif scalar == "untyped" and isinstance(value, dict | list):
        yield "", f"expected any scalar, got &{{{plain(value)}}}"


def _problems_of_map(mapping: MappingType, value: dict[str, Any], allow_duplicates: bool) -> Iterator[Problem]:
    fields, element = mapping.fields, mapping.element
    for key, inner in value.items():
        named = fields.get(key)
        node = named.node if named is not None else element
        if node is None:
            yield f".{key}", "field not declared in schema"
            # The real server stops at the first one of a map, too.
            return
        if inner is None or (type(inner) is str and node.scalar in ("string", "untyped")):
            continue
        for path, text in _problems(node, inner, allow_duplicates):
            yield f".{key}{path}", text


def _problems_of_list(sequence: SequenceType, items: list[Any], allow_duplicates: bool) -> Iterator[Problem]:
    if sequence.atomic:
        for place, item in enumerate(items):
            for path, text in _problems(sequence.element, item, allow_duplicates):
                yield f"[{place}]{path}", text
        return
    seen: set[str] = set()
    for place, item in enumerate(items):
        try:
            element = item_element(sequence, item)
        except Unreadable as wrong:
            yield "", f"element {place}: {wrong}"
            return
        if element in seen and not allow_duplicates:
            yield "", f"duplicate entries for key {text_of(element)}"
        seen.add(element)
        for path, text in _problems(sequence.element, item, allow_duplicates):
            yield text_of(element) + path, text
