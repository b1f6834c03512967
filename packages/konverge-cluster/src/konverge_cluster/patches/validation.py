"""Check that a value matches its topology, with the texts of the real server.

The other rules of the schema (required, patterns, limits) are not checked here: merging does not need them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge_cluster.patches.elements import PathElementError, item_element, text_of
from konverge_cluster.patches.go_text import kind_of, literal, plain
from konverge_cluster.patches.topology import MappingType, Node, SequenceType

__all__ = ["ValidationError", "validate"]


class ValidationError(ValueError):
    """A value that does not match its topology; the text contains the path."""


TypedError = tuple[str, str]
"""(path, error text)"""


def validate(node: Node, value: Any, *, allow_duplicates: bool = False) -> None:
    """Check a complete value.

    Raises: ValidationError that lists all errors.
    """
    errors = [f"{path}: {text}" if path else text for path, text in _errors(node, value, allow_duplicates)]
    if len(errors) == 1:
        raise ValidationError(errors[0])
    if errors:
        raise ValidationError("\n".join(["errors:", *(f"  {error}" for error in errors)]))


def _errors(node: Node, value: Any, allow_duplicates: bool) -> Iterator[TypedError]:
    if value is None:
        return
    form = node.form_of(value)
    form = node.first_form if form == "any" else form
    if form == "mapping" and node.mapping is not None:
        if not isinstance(value, dict):
            yield "", f"expected map, got &{{{plain(value)}}}"
        else:
            yield from _map_errors(node.mapping, value, allow_duplicates)
    elif form == "sequence" and node.sequence is not None:
        if not isinstance(value, list):
            yield "", f"expected list, got &{{{plain(value)}}}"
        else:
            yield from _list_errors(node.sequence, value, allow_duplicates)
    else:
        yield from _scalar_errors(node.scalar, value)


def _scalar_errors(scalar: str, value: Any) -> Iterator[TypedError]:
    if scalar == "numeric" and (isinstance(value, bool) or not isinstance(value, int | float)):
        yield "", f"expected numeric (int or float), got {kind_of(value)}"
    elif scalar == "string" and not isinstance(value, str):
        yield "", f"expected string, got &value.valueUnstructured{{Value:{literal(value)}}}"
    elif scalar == "boolean" and not isinstance(value, bool):
        yield "", f"expected boolean, got &{{{plain(value)}}}"
    elif scalar == "untyped" and isinstance(value, dict | list):
        yield "", f"expected any scalar, got &{{{plain(value)}}}"


def _map_errors(mapping: MappingType, value: dict[str, Any], allow_duplicates: bool) -> Iterator[TypedError]:
    fields, element = mapping.fields, mapping.element
    for key, inner in value.items():
        named = fields.get(key)
        node = named.node if named is not None else element
        if node is None:
            yield f".{key}", "field not declared in schema"
            # The real server also stops at the first undeclared field of a map.
            return
        if inner is None or (type(inner) is str and node.scalar in ("string", "untyped")):
            continue
        for path, text in _errors(node, inner, allow_duplicates):
            yield f".{key}{path}", text


def _list_errors(sequence: SequenceType, items: list[Any], allow_duplicates: bool) -> Iterator[TypedError]:
    if sequence.atomic:
        for index, item in enumerate(items):
            for path, text in _errors(sequence.element, item, allow_duplicates):
                yield f"[{index}]{path}", text
        return
    seen: set[str] = set()
    for index, item in enumerate(items):
        try:
            element = item_element(sequence, item)
        except PathElementError as error:
            yield "", f"element {index}: {error}"
            return
        if element in seen and not allow_duplicates:
            yield "", f"duplicate entries for key {text_of(element)}"
        seen.add(element)
        for path, text in _errors(sequence.element, item, allow_duplicates):
            yield text_of(element) + path, text
