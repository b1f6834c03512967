"""Field sets, in the format of managedFields.

A set is a FieldsV1 document: a tree of path elements. An element with an empty tree is a member; an element with a
non-empty tree is a member only if the tree has a ".". So `{"f:a": {}}` contains `.a`, `{"f:a": {"f:b": {}}}` contains
only `.a.b`, and `{"f:a": {".": {}, "f:b": {}}}` contains both. Sets are values: no function changes its arguments, and
results share equal parts with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge_cluster.patches.elements import PathElementError, canonical, sort_key, text_of
from konverge_cluster.patches.topology import Node

__all__ = [
    "FieldSet",
    "difference",
    "intersection",
    "is_member",
    "make_set",
    "named_members",
    "ordered",
    "paths",
    "read_set",
    "subtract",
    "union",
]

FieldSet = dict[str, Any]


def make_set(*dotted: str) -> FieldSet:
    """Make a set of field paths: ``make_set("status", "metadata.labels")``."""
    result: FieldSet = {}
    for path in dotted:
        entry: FieldSet = {}
        for name in reversed(path.split(".")):
            entry = {"f:" + name: entry}
        result = union(result, entry)
    return result


def is_member(entry: FieldSet | None) -> bool:
    """Report whether the element with this tree is itself a member."""
    return entry is not None and (not entry or "." in entry)


def children_of(entry: FieldSet | None) -> FieldSet:
    """Return the members below the element with this tree."""
    if not entry or "." not in entry:
        return entry or {}
    return {element: inner for element, inner in entry.items() if element != "."}


def as_entry(inner: FieldSet, member: bool) -> FieldSet | None:
    """Return the tree of an element; None when neither it nor anything below it is a member."""
    if not inner:
        return {} if member else None
    return {".": {}, **inner} if member else inner


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the union of two sets."""
    if not one or not other:
        return one or other
    result = dict(one)
    for element, entry in other.items():
        known = result.get(element)
        if known is None:
            result[element] = entry
        elif known is not entry:
            result[element] = (
                as_entry(union(children_of(known), children_of(entry)), is_member(known) or is_member(entry)) or {}
            )
    return result


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the intersection of two sets."""
    result: FieldSet = {}
    for element, entry in one.items():
        match = other.get(element)
        if match is None or element == ".":
            continue
        both = as_entry(intersection(children_of(entry), children_of(match)), is_member(entry) and is_member(match))
        if both is not None:
            result[element] = both
    return result


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the first set without the members of the second; a path removes only itself, not the paths below it."""
    result = dict(one)
    for element, removed in other.items():
        entry = result.get(element)
        if entry is None or element == ".":
            continue
        if not entry and not removed:
            del result[element]
            continue
        rest = as_entry(
            difference(children_of(entry), children_of(removed)), is_member(entry) and not is_member(removed)
        )
        if rest is None:
            del result[element]
        else:
            result[element] = rest
    return result


def subtract(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the first set without the members of the second and without the paths below them."""
    result = dict(one)
    for element, removed in other.items():
        entry = result.get(element)
        if entry is None or element == ".":
            continue
        rest = None if is_member(removed) else as_entry(subtract(children_of(entry), removed), is_member(entry))
        if rest is None:
            del result[element]
        else:
            result[element] = rest
    return result


def named_members(fields: FieldSet, node: Node | None) -> FieldSet:
    """Add every struct field that has members below it; map keys and list items are not added."""
    if node is None:
        return fields
    result: FieldSet = {}
    for element, entry in fields.items():
        if not entry:
            result[element] = entry
            continue
        inner, is_named = _step(node, element)
        result[element] = as_entry(named_members(children_of(entry), inner), is_named or is_member(entry)) or {}
    return result


def _step(node: Node, element: str) -> tuple[Node | None, bool]:
    """Return the node that an element leads to, and whether it is a named field."""
    if element[0] == "f" and node.mapping is not None:
        named = element[2:] in node.mapping.fields
        return (node.mapping.child(element[2:]) if named else node.mapping.element), named
    if element[0] == "k" and node.sequence is not None:
        return node.sequence.element, False
    return None, False


def ordered(fields: FieldSet) -> FieldSet:
    """Sort the elements at every depth as the real server writes them."""
    elements = sorted(fields)
    if elements and elements[-1][0] > "f":
        # Only fields sort like their text. Other elements sort after fields, so checking the last one is enough.
        elements.sort(key=sort_key)
    return {element: ordered(entry) if (entry := fields[element]) else entry for element in elements}


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yield every path of the set in the form of messages: at each depth first the members, then the paths below."""
    elements = [element for element in sorted(fields, key=sort_key) if element != "."]
    yield from (prefix + text_of(element) for element in elements if is_member(fields[element]))
    for element in elements:
        yield from paths(children_of(fields[element]), prefix + text_of(element))


def read_set(document: Any) -> FieldSet:
    """Read a set from a client: return elements in canonical form, drop unknown kinds of elements.

    Raises: PathElementError when it is not a FieldsV1 document.
    """
    read = _read_entry(document)
    return children_of(read)


def _read_entry(document: Any) -> FieldSet:
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise PathElementError(f"expected an object of path elements, got {type(document).__name__}")
    result: FieldSet = {}
    for element, entry in document.items():
        key = element if element == "." else canonical(element)
        if key is not None:
            result[key] = {} if key == "." else _read_entry(entry)
    return {} if result.keys() == {"."} else result
