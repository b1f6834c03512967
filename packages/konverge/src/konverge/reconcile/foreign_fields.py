"""The fields of an object that other managers set, by its managedFields. The status does not count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from msgspec import Struct

from konverge.reconcile.changed_fields import path_step
from konverge.reconcile.owned_fields import FieldTree, fields_of

__all__ = ["ForeignField", "foreign_fields"]

Elements: TypeAlias = tuple[str, ...]
"""The path elements of managedFields from the root to a field."""


class ForeignField(Struct, frozen=True, order=True):
    """A field that another manager has set: its wire path, the manager, and whether our manager has applied it too.

    A field is shared if both set it to the same value, or after it was handed over.
    """

    path: str
    manager: str
    shared: bool = False


def foreign_fields(live: dict[str, Any], manager: str) -> list[ForeignField]:
    """Return the fields of an object that other managers than `manager` set, by path.

    Values that a controller reports through the status subresource are not listed; a scale is.
    """
    own = set(_leaves(fields_of(live, manager) or {}))
    found = {
        ForeignField(_path(leaf), str(entry.get("manager") or ""), leaf in own)
        for entry in live.get("metadata", {}).get("managedFields") or ()
        if entry.get("manager") != manager and entry.get("subresource") != "status"
        for leaf in _leaves(entry.get("fieldsV1") or {})
        if leaf[0] != "f:status"
    }
    return sorted(found)


def _leaves(tree: FieldTree, parent: Elements = ()) -> Iterator[Elements]:
    children = {element: child for element, child in tree.items() if element != "."}
    if not children and parent:
        yield parent
    for element, child in children.items():
        yield from _leaves(child, (*parent, element))


def _path(elements: Elements) -> str:
    return "".join(map(_step, elements))


def _step(element: str) -> str:
    """Return an element as a step of a wire path, as `hand_over` accepts it; an item of a set is `["value"]`."""
    prefix, content = element[:2], element[2:]
    if prefix == "f:":
        return path_step(content)
    if prefix == "k:":
        return "[" + ",".join(f"{name}={json.dumps(value)}" for name, value in json.loads(content).items()) + "]"
    return f"[{content}]"
