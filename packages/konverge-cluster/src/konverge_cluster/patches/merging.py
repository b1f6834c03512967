"""Merge an applied configuration into a live value, and take fields out of a value.

Rules of the merge:

1. The configuration wins at every leaf: scalars, atomic values, and containers that are empty on both sides.
2. Maps are merged key by key. A null or empty granular container in the configuration changes nothing.
3. Items of granular lists are merged by their element. Items that only the live list has keep their place between
   their neighbours; items that both have stand in the order of the configuration; new items follow what stands before
   them in the configuration.

Nothing given is changed. What the configuration does not change is the live value itself, not a copy, so that a later
comparison ends there at once.
"""

from __future__ import annotations

from operator import is_
from typing import Any

from konverge_cluster.patches.comparison import same
from konverge_cluster.patches.elements import item_element
from konverge_cluster.patches.field_sets import FieldSet, children_of, is_member
from konverge_cluster.patches.topology import MappingType, Node, SequenceType

__all__ = ["merge", "remove"]


def merge(node: Node, live: Any, config: Any) -> Any:
    """Merge `config` into `live`."""
    form = node.form_of(config)
    form = node.first_form if form == "any" else form
    if form == "mapping" and node.mapping is not None and not node.mapping.atomic:
        before = live if isinstance(live, dict) else {}
        after = config if isinstance(config, dict) else {}
        return _merge_maps(node.mapping, before, after) if before or after else config
    if form == "sequence" and node.sequence is not None and not node.sequence.atomic:
        first = live if isinstance(live, list) else []
        second = config if isinstance(config, list) else []
        return _merge_lists(node.sequence, first, second) if first or second else config
    return live if same(live, config) else config


def _merge_maps(mapping: MappingType, live: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    new = {key: merge(mapping.child(key), live[key], value) if key in live else value for key, value in config.items()}
    if all(key in live and live[key] is value for key, value in new.items()):
        return live
    return {**live, **new}


def _merge_lists(sequence: SequenceType, live: list[Any], config: list[Any]) -> list[Any]:
    if not live or not config:
        return live or config
    ours = {item_element(sequence, item): item for item in config}
    theirs = [item_element(sequence, item) for item in live]
    by_element: dict[str, Any] = {}
    for element, item in zip(theirs, live, strict=True):
        # An item that the live list has twice cannot be merged with: the configuration's replaces both.
        by_element[element] = None if element in by_element else item
    merged = {
        element: merge(sequence.element, by_element[element], item) if element in by_element else item
        for element, item in ours.items()
    }
    result = [live[at] if at >= 0 else merged[element] for element, at in _interleaved(theirs, list(ours))]
    unchanged = len(result) == len(live) and all(map(is_, result, live))
    return live if unchanged else result


def _interleaved(live: list[str], config: list[str]) -> list[tuple[str, int]]:
    """Order the elements of two lists; the number is the place in the live list, -1 for an item to merge."""
    known, present = set(config), set(live)
    awaited = [element for element in reversed(config) if element in present]
    order: list[tuple[str, int]] = []
    done: set[str] = set()
    here = there = 0
    while here < len(live) or there < len(config):
        head = live[here] if here < len(live) else None
        if head is not None and head not in known:
            order.append((head, here))
            here += 1
        elif head is not None and there < len(config) and head != config[there] and awaited and awaited[-1] != head:
            # It stands in the configuration too, further on: its turn comes there.
            here += 1
        else:
            here += head is not None and (head in done or head in config[there : there + 1])
            for element in config[there : there + 1]:
                order.append((element, -1))
                done.add(element)
                if awaited and awaited[-1] == element:
                    awaited.pop()
                there += 1
    return order


def remove(node: Node, value: Any, fields: FieldSet) -> Any:
    """Take the fields of a set out of a value; None when nothing is left of it."""
    form = node.form_of(value)
    form = node.first_form if form == "any" else form
    if form == "mapping" and node.mapping is not None:
        return _remove_keys(node.mapping, value, fields) if isinstance(value, dict) else None
    if form == "sequence" and node.sequence is not None:
        return _remove_items(node.sequence, value, fields) if isinstance(value, list) else None
    return value


def _remove_keys(mapping: MappingType, value: dict[str, Any], fields: FieldSet) -> dict[str, Any] | None:
    if mapping.atomic:
        return None
    kept: dict[str, Any] = {}
    for key, inner in value.items():
        entry = fields.get("f:" + key)
        if entry is None:
            kept[key] = inner
        elif not is_member(entry):
            kept[key] = remove(mapping.child(key), inner, children_of(entry))
    return kept or None


def _remove_items(sequence: SequenceType, value: list[Any], fields: FieldSet) -> list[Any] | None:
    if sequence.atomic:
        return None
    kept: list[Any] = []
    for item in value:
        entry = fields.get(item_element(sequence, item))
        if entry is None:
            kept.append(item)
        elif not is_member(entry):
            kept.append(remove(sequence.element, item, children_of(entry)))
    return kept or None
