"""Merge an applied configuration into a live value, and remove fields from a value.

Rules of the merge:

1. The configuration wins at every leaf: scalars, atomic values, and containers that are empty on both sides.
2. Maps are merged key by key. A null or empty granular container in the configuration changes nothing.
3. Items of granular lists are merged by their path element. Items only in the live list keep their position between
   their neighbors; items in both lists are in the order of the configuration; new items follow the item before them in
   the configuration.

Arguments are not changed. Where the configuration changes nothing, the result is the live value itself, not a copy, so
that a later comparison is fast.
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
    configured = {item_element(sequence, item): item for item in config}
    live_elements = [item_element(sequence, item) for item in live]
    by_element: dict[str, Any] = {}
    for element, item in zip(live_elements, live, strict=True):
        # Duplicate items of the live list cannot be merged: the configuration's item replaces both.
        by_element[element] = None if element in by_element else item
    merged = {
        element: merge(sequence.element, by_element[element], item) if element in by_element else item
        for element, item in configured.items()
    }
    result = [live[at] if at >= 0 else merged[element] for element, at in _interleaved(live_elements, list(configured))]
    unchanged = len(result) == len(live) and all(map(is_, result, live))
    return live if unchanged else result


def _interleaved(live: list[str], config: list[str]) -> list[tuple[str, int]]:
    """Return the elements of two lists in order; the number is the index in the live list, -1 for a merged item."""
    known, present = set(config), set(live)
    shared = [element for element in reversed(config) if element in present]
    order: list[tuple[str, int]] = []
    added: set[str] = set()
    live_index = config_index = 0
    while live_index < len(live) or config_index < len(config):
        head = live[live_index] if live_index < len(live) else None
        if head is not None and head not in known:
            order.append((head, live_index))
            live_index += 1
        elif (
            head is not None
            and config_index < len(config)
            and head != config[config_index]
            and shared
            and shared[-1] != head
        ):
            # The element is also in the configuration, at a later position, and is added there.
            live_index += 1
        else:
            live_index += head is not None and (head in added or head in config[config_index : config_index + 1])
            for element in config[config_index : config_index + 1]:
                order.append((element, -1))
                added.add(element)
                if shared and shared[-1] == element:
                    shared.pop()
                config_index += 1
    return order


def remove(node: Node, value: Any, fields: FieldSet) -> Any:
    """Remove the fields of a set from a value; return None when nothing is left."""
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
    remaining: dict[str, Any] = {}
    for key, inner in value.items():
        entry = fields.get("f:" + key)
        if entry is None:
            remaining[key] = inner
        elif not is_member(entry):
            remaining[key] = remove(mapping.child(key), inner, children_of(entry))
    return remaining or None


def _remove_items(sequence: SequenceType, value: list[Any], fields: FieldSet) -> list[Any] | None:
    if sequence.atomic:
        return None
    remaining: list[Any] = []
    for item in value:
        entry = fields.get(item_element(sequence, item))
        if entry is None:
            remaining.append(item)
        elif not is_member(entry):
            remaining.append(remove(sequence.element, item, children_of(entry)))
    return remaining or None
