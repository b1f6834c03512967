"""Sets of fields, in the form that managedFields stores them.

A set is a FieldsV1 document: a tree of path elements. An element with an empty tree below is in the set; one with a
tree below is not, unless the tree has a "." of its own. So `{"f:a": {}}` holds `.a`, `{"f:a": {"f:b": {}}}` holds only
`.a.b`, and `{"f:a": {".": {}, "f:b": {}}}` holds both. Sets are values: no function here changes what it is given, and
results share what is equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge_cluster.patches.elements import PathElementError, canonical, order_of, text_of
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
    made: FieldSet = {}
    for path in dotted:
        entry: FieldSet = {}
        for name in reversed(path.split(".")):
            entry = {"f:" + name: entry}
        made = union(made, entry)
    return made


def is_member(entry: FieldSet | None) -> bool:
    """Tell whether the element that this tree stands under is in the set itself."""
    return entry is not None and (not entry or "." in entry)


def children_of(entry: FieldSet | None) -> FieldSet:
    """Give what is in the set below the element that this tree stands under."""
    if not entry or "." not in entry:
        return entry or {}
    return {element: inner for element, inner in entry.items() if element != "."}


def as_entry(inner: FieldSet, member: bool) -> FieldSet | None:
    """Build the tree to stand under an element; None when neither it nor anything below is in the set."""
    if not inner:
        return {} if member else None
    return {".": {}, **inner} if member else inner


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Give what is in either set."""
    if not one or not other:
        return one or other
    made = dict(one)
    for element, entry in other.items():
        known = made.get(element)
        if known is None:
            made[element] = entry
        elif known is not entry:
            made[element] = (
                as_entry(union(children_of(known), children_of(entry)), is_member(known) or is_member(entry)) or {}
            )
    return made


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """Give what is in both sets."""
    made: FieldSet = {}
    for element, entry in one.items():
        match = other.get(element)
        if match is None or element == ".":
            continue
        both = as_entry(intersection(children_of(entry), children_of(match)), is_member(entry) and is_member(match))
        if both is not None:
            made[element] = both
    return made


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Give what is in the first set and not in the second; a path removes itself only, not what is below it."""
    made = dict(one)
    for element, taken in other.items():
        entry = made.get(element)
        if entry is None or element == ".":
            continue
        if not entry and not taken:
            del made[element]
            continue
        rest = as_entry(difference(children_of(entry), children_of(taken)), is_member(entry) and not is_member(taken))
        if rest is None:
            del made[element]
        else:
            made[element] = rest
    return made


def subtract(one: FieldSet, other: FieldSet) -> FieldSet:
    """Give what is in the first set and neither in the second nor below a path of the second."""
    made = dict(one)
    for element, taken in other.items():
        entry = made.get(element)
        if entry is None or element == ".":
            continue
        rest = None if is_member(taken) else as_entry(subtract(children_of(entry), taken), is_member(entry))
        if rest is None:
            del made[element]
        else:
            made[element] = rest
    return made


def named_members(fields: FieldSet, node: Node | None) -> FieldSet:
    """Add every struct field that something in the set is below of; map keys and list items are not added."""
    if node is None:
        return fields
    made: FieldSet = {}
    for element, entry in fields.items():
        if not entry:
            made[element] = entry
            continue
        inner, is_named = _step(node, element)
        made[element] = as_entry(named_members(children_of(entry), inner), is_named or is_member(entry)) or {}
    return made


def _step(node: Node, element: str) -> tuple[Node | None, bool]:
    """Give the node that an element leads to, and whether it is a named field."""
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
        # Only fields sort as their text does; any other kind of element comes after them, so the last one tells.
        elements.sort(key=order_of)
    return {element: ordered(entry) if (entry := fields[element]) else entry for element in elements}


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Write every path in the set as messages do: at each depth first the members, then what is below them."""
    elements = [element for element in sorted(fields, key=order_of) if element != "."]
    yield from (prefix + text_of(element) for element in elements if is_member(fields[element]))
    for element in elements:
        yield from paths(children_of(fields[element]), prefix + text_of(element))


def read_set(document: Any) -> FieldSet:
    """Read a set from a client: elements in canonical form, unknown kinds of elements dropped.

    Raises: Unreadable when it is no FieldsV1 document.
    """
    read = _read_entry(document)
    return children_of(read)


def _read_entry(document: Any) -> FieldSet:
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise PathElementError(f"expected an object of path elements, got {type(document).__name__}")
    made: FieldSet = {}
    for element, entry in document.items():
        key = element if element == "." else canonical(element)
        if key is not None:
            made[key] = {} if key == "." else _read_entry(entry)
    return {} if made.keys() == {"."} else made
