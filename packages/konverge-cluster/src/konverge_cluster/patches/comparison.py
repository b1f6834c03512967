"""The fields that a write changed, and the fields in a configuration, as field sets.

`compare` returns the fields that were added or modified, and those that were removed. `fields_of` returns the fields of
an applied configuration, which is not the same as the changes from adding it:

1. `compare` includes every container that was added or removed: a new map is changed itself and in all its parts. A
   container on both sides is never changed itself, only its parts.
2. `fields_of` includes leaves, map keys and list items. A struct itself is not included, unless it is empty or null.
3. Both treat an atomic value as one field, and the items with a duplicate key in a granular list as one field.

Both expect values that `validate` accepts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from konverge_cluster.patches.elements import item_element
from konverge_cluster.patches.field_sets import FieldSet, as_entry, children_of, is_member, union
from konverge_cluster.patches.topology import ABSENT, MappingType, Node, SequenceType

__all__ = ["compare", "fields_of", "same"]


def compare(node: Node, old: Any, new: Any) -> tuple[FieldSet, FieldSet]:
    """Return (changed, removed): what `new` adds or modifies, and what it no longer has."""
    changed, removed = _differ(node, old, new)
    return children_of(changed), children_of(removed)


def fields_of(node: Node, value: Any) -> FieldSet:
    """Return the fields of an applied configuration."""
    return children_of(_configured(node, value))


def same(one: Any, other: Any) -> bool:
    """Compare as the real server does: 1 equals 1.0, but true equals no number."""
    if one is other:
        return True
    if one != other:
        return False
    if isinstance(one, dict):
        return all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool)


Differences = tuple[FieldSet | None, FieldSet | None]
"""The trees below an element: the changed and the removed fields; None for no fields."""

_LEAF: Differences = ({}, None)
_NOTHING: Differences = (None, None)


def _differ(node: Node, old: Any, new: Any) -> Differences:
    if old is new:
        return _NOTHING
    before, after = node.form_of(old), node.form_of(new)
    if before == after:
        return _differ_as(node, after, old, new)
    if node.has_one_form:
        return _differ_as(node, node.first_form, old, new)
    # Where the schema allows several forms, both are compared: the field changed, and so did all its parts.
    one, other = _differ_as(node, before, old, new), _differ_as(node, after, old, new)
    return _either(one[0], other[0]), _either(one[1], other[1])


def _either(one: FieldSet | None, other: FieldSet | None) -> FieldSet | None:
    if one is None or other is None:
        return one if other is None else other
    return as_entry(union(children_of(one), children_of(other)), is_member(one) or is_member(other))


def _differ_as(node: Node, form: str, old: Any, new: Any) -> Differences:
    form = node.first_form if form == "any" else form
    if form == "mapping" and node.mapping is not None:
        before, after = _dict(old), _dict(new)
        if not node.mapping.atomic and (before or after):
            return _differ_maps(node.mapping, before, after)
    elif form == "sequence" and node.sequence is not None:
        first, second = _list(old), _list(new)
        if not node.sequence.atomic and (first or second):
            return _differ_lists(node.sequence, first, second)
    return _NOTHING if same(old, new) else _LEAF


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _differ_maps(mapping: MappingType, old: dict[str, Any], new: dict[str, Any]) -> Differences:
    changed: FieldSet = {}
    removed: FieldSet = {}
    child = mapping.child
    for key, value in new.items():
        before = old.get(key, ABSENT)
        if before is ABSENT:
            changed["f:" + key] = _complete_set(child(key), value) if isinstance(value, dict | list) else {}
        elif before is not value:
            _add_difference("f:" + key, _differ(child(key), before, value), changed, removed)
    for key, value in old.items():
        if key not in new:
            removed["f:" + key] = _complete_set(child(key), value)
    return changed or None, removed or None


def _add_difference(element: str, found: Differences, changed: FieldSet, removed: FieldSet) -> None:
    if found[0] is not None:
        changed[element] = found[0]
    if found[1] is not None:
        removed[element] = found[1]


def _differ_lists(sequence: SequenceType, old: list[Any], new: list[Any]) -> Differences:
    changed: FieldSet = {}
    removed: FieldSet = {}
    before, after = _group_items(sequence, old), _group_items(sequence, new)
    for element in before | after:
        found = _differ_items(sequence.element, before.get(element, []), after.get(element, []))
        _add_difference(element, found, changed, removed)
    return changed or None, removed or None


def _differ_items(node: Node, old: list[Any], new: list[Any]) -> Differences:
    """Compare the items of one key; items with a duplicate key are compared as a whole."""
    if len(old) > 1 and len(new) > 1:
        return _NOTHING if same(old, new) else _LEAF
    if len(old) > 1:
        return (_complete_set(node, new[0]) if new else None), {}
    if len(new) > 1:
        return {}, (_complete_set(node, old[0]) if old else None)
    if not old:
        return _complete_set(node, new[0]), None
    if not new:
        return None, _complete_set(node, old[0])
    return _differ(node, old[0], new[0])


def _group_items(sequence: SequenceType, items: Iterable[Any]) -> dict[str, list[Any]]:
    grouped: dict[str, list[Any]] = {}
    for item in items:
        grouped.setdefault(item_element(sequence, item), []).append(item)
    return grouped


def _complete_set(node: Node, value: Any) -> FieldSet:
    """Return the tree of a value that was added or removed: the value and all its parts."""
    if isinstance(value, dict):
        mapping = node.mapping
        if mapping is None or mapping.atomic or not value:
            return {}
        result: FieldSet = {".": {}}
        for key, inner in value.items():
            result["f:" + key] = _complete_set(mapping.child(key), inner) if isinstance(inner, dict | list) else {}
        return result
    if isinstance(value, list):
        sequence = node.sequence
        if sequence is None or sequence.atomic or not value:
            return {}
        return {".": {}, **dict(_complete_items(sequence, value))}
    return {}


def _complete_items(sequence: SequenceType, items: list[Any]) -> Iterator[tuple[str, FieldSet]]:
    for element, group in _group_items(sequence, items).items():
        yield element, _complete_set(sequence.element, group[0]) if len(group) == 1 else {}


def _configured(node: Node, value: Any) -> FieldSet | None:
    form = node.form_of(value)
    form = node.first_form if form == "any" else form
    if form == "mapping" and node.mapping is not None:
        return {} if node.mapping.atomic else _configured_fields(node.mapping, _dict(value)) or None
    if form == "sequence" and node.sequence is not None:
        return {} if node.sequence.atomic else _configured_items(node.sequence, _list(value)) or None
    return {}


def _configured_fields(mapping: MappingType, value: dict[str, Any]) -> FieldSet:
    result: FieldSet = {}
    for key, inner in value.items():
        entry = _configured(mapping.child(key), inner)
        is_listed = inner is None or inner == {} or key not in mapping.fields
        if entry is None:
            entry = {} if is_listed else None
        elif is_listed:
            entry = as_entry(children_of(entry), True)
        if entry is not None:
            result["f:" + key] = entry
    return result


def _configured_items(sequence: SequenceType, items: list[Any]) -> FieldSet:
    result: FieldSet = {}
    for element, group in _group_items(sequence, items).items():
        entry = _configured(sequence.element, group[0]) if len(group) == 1 else {}
        result[element] = as_entry(children_of(entry), True) or {}
    return result
