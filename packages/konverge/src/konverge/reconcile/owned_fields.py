"""The fields that a manager owns, and what an object holds there.

managedFields say which fields a server-side apply named, as a tree of path elements: `f:name` is a field, `k:{...}` an
item of a list by its keys, `v:...` an item of a set, `.` the element itself. What lies between two leaves belongs to
others. Rules that hold here:

1. A leaf is compared as a whole: a scalar, an atomic list or map.
2. A change by anybody else takes the leaf out of our tree. So a leaf that is ours, that we want empty, and that holds
   something or is gone, is no drift: others filled in their own parts of it, or the server leaves empty values out.
3. Items are found by their keys; an item that we want may leave out a key that has a default. Their order counts.
4. An empty list whose items have owners of their own is owned by nobody: who wants it empty wants nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from konverge.objects import AnyObject, Resource

__all__ = [
    "FieldTree",
    "Look",
    "fields_of",
    "is_applied_by",
    "look",
    "pick",
    "wants_nothing",
    "without_emptied",
    "without_identity",
]

FieldTree: TypeAlias = dict[str, Any]
"""A FieldsV1 document."""

Json: TypeAlias = dict[str, Any]

_ABSENT: Any = object()
_text = msgspec.json.Encoder(order="deterministic").encode
_GIVEN_BY_SERVER = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
)
"""Nobody owns these, whoever sends them."""


@dataclass(frozen=True, slots=True)
class Look:
    """What an object holds at the fields that are owned, and whether that is just what is wanted."""

    values: Any
    agrees: bool


def fields_of(obj: Json, manager: str) -> FieldTree | None:
    """Give the fields that a manager owns by apply, in the version of the object; None when there are none."""
    for entry in obj.get("metadata", {}).get("managedFields") or ():
        if _is_apply_of(manager, entry) and entry.get("apiVersion") == obj.get("apiVersion"):
            return entry.get("fieldsV1") or {}
    return None


def is_applied_by(obj: AnyObject, manager: str) -> bool:
    """Tell whether a manager has applied an object and owns something of it still."""
    if isinstance(obj, Resource):
        entries = obj.metadata.managed_fields
        return any(one.manager == manager and one.operation == "Apply" and not one.subresource for one in entries)
    return any(_is_apply_of(manager, one) for one in obj.metadata.get("managedFields") or ())


def without_identity(wire: Json) -> Json:
    """Give what of an object can be owned: all but what it is and what it is called."""
    rest = {name: value for name, value in wire.items() if name not in ("apiVersion", "kind", "metadata")}
    metadata = {name: value for name, value in wire.get("metadata", {}).items() if name not in _GIVEN_BY_SERVER}
    return {"metadata": metadata, **rest} if metadata else rest


def look(owned: FieldTree, live: Json, desired: Json) -> Look:
    """Look at the owned fields of a live object, and compare them with what is wanted, both as wire values.

    It agrees if what is wanted names exactly the owned fields, and each holds what is wanted.
    """
    wanted = without_identity(desired)
    if not _below(owned):
        return Look(None, not wanted or _is_nothing(wanted, live))
    return Look(*_look(owned, live, wanted))


def wants_nothing(desired: Json) -> bool:
    """Tell whether an object names no field that could be owned [4]."""
    wanted = without_identity(desired)
    return not wanted or _is_nothing(wanted, _ABSENT)


def pick(owned: FieldTree, live: Any) -> Any:
    """Give what a value holds at the owned fields, and the keys of the list items on the way; nothing else."""
    inner = _below(owned)
    sorts = {element[:2] for element in inner}
    if sorts == {"f:"} and isinstance(live, dict):
        names = {element[2:]: below for element, below in inner.items() if element[2:] in live}
        return {name: pick(below, live[name]) for name, below in names.items()}
    if sorts in ({"k:"}, {"v:"}) and isinstance(live, list):
        places = _places(inner, live)
        return [_picked_item(element, inner[element], live[place]) for element, place in places.items()]
    return live


def without_emptied(owned: FieldTree, desired: Any) -> Any:
    """Give what is wanted without the maps and lists that are to become empty while parts of them are ours; or None.

    A server that is asked to empty such a one stores null, refuses that, or drops what holds it.
    """
    inner = _below(owned)
    if not inner or not isinstance(desired, dict | list):
        return desired
    if isinstance(desired, dict):
        less: Any = {
            name: rest
            for name, value in desired.items()
            if (rest := without_emptied(inner.get(f"f:{name}", {}), value)) is not None or value is None
        }
    else:
        found = {place: inner[element] for element, place in _places(inner, desired).items()}
        less = [without_emptied(found.get(place, {}), item) for place, item in enumerate(desired)]
    return less or None


def _picked_item(element: str, owned: FieldTree, item: Any) -> Any:
    picked = pick(owned, item)
    return {**json.loads(element[2:]), **picked} if element[:2] == "k:" else picked


def _is_apply_of(manager: str, entry: Json) -> bool:
    applied = entry.get("operation") == "Apply" and not entry.get("subresource")
    return applied and entry.get("manager") == manager


def _below(owned: FieldTree) -> FieldTree:
    return {element: inner for element, inner in owned.items() if element != "."} if "." in owned else owned


def _look(owned: FieldTree, live: Any, desired: Any) -> tuple[Any, bool]:
    """Give what `Look` holds, as a pair: there are dozens of them in one object."""
    sort = _sort_of(owned)
    if sort == "f:" and isinstance(live, dict):
        return _look_at_fields(owned, live, desired)
    if sort in ("k:", "v:") and isinstance(live, list):
        return _look_at_items(_below(owned), live, desired)
    return _look_at_leaf(live, desired)


def _sort_of(owned: FieldTree) -> str:
    """Give what the elements of a tree begin with; nothing for a leaf, and where they differ."""
    found = ""
    for element in owned:
        if element != "." and element[:2] != found:
            if found:
                return ""
            found = element[:2]
    return found


def _look_at_leaf(live: Any, desired: Any) -> tuple[Any, bool]:
    if _is_filled_in(live, desired):
        return None, True
    return "absent" if live is _ABSENT else [live], _same(live, desired)


def _is_filled_in(live: Any, desired: Any) -> bool:
    """Tell whether a leaf that is wanted empty is as it should be, whatever is there [2]."""
    if live is _ABSENT:
        return desired is not _ABSENT and not desired
    return not desired and isinstance(desired, dict | list) and type(live) is type(desired)


def _is_nothing(desired: Any, live: Any) -> bool:
    """Tell whether what is wanted has nothing that could be owned, and is so: empty lists, or what holds just these."""
    if isinstance(desired, dict):
        inner = live if isinstance(live, dict) else {}
        return bool(desired) and all(_is_nothing(one, inner.get(name, _ABSENT)) for name, one in desired.items())
    return desired == [] and (live is _ABSENT or live == [])


def _look_at_fields(owned: FieldTree, live: Json, desired: Any) -> tuple[Any, bool]:
    wanted = desired if isinstance(desired, dict) else {}
    agrees, values = True, {}
    for element, inner in owned.items():
        if element != ".":
            name = element[2:]
            values[name], same = _look(inner, live.get(name, _ABSENT), wanted.get(name, _ABSENT))
            agrees = agrees and same and name in wanted
    for name, value in wanted.items():
        agrees = agrees and (name in values or _is_nothing(value, live.get(name, _ABSENT)))
    return values, agrees


def _look_at_items(owned: FieldTree, live: list[Any], desired: Any) -> tuple[Any, bool]:
    there = _places(owned, live)
    wanted = _places(owned, desired) if isinstance(desired, list) else {}
    agrees = isinstance(desired, list) and len(wanted) == len(owned) == len(desired)
    values = {}
    for element, inner in owned.items():
        item = live[there[element]] if element in there else _ABSENT
        values[element], same = _look(inner, item, desired[wanted[element]] if element in wanted else _ABSENT)
        agrees = agrees and same
    order = sorted(there, key=there.__getitem__)
    agrees = agrees and order == sorted(wanted, key=wanted.__getitem__)
    return [[element, values[element]] for element in order], agrees


def _places(owned: FieldTree, items: list[Any]) -> dict[str, int]:
    """Find where in a list each owned item is: by all its keys, then, for what is left, by those that are written."""
    found: dict[str, int] = {}
    indexes: dict[tuple[str, ...], dict[Any, int]] = {}
    for element in owned:
        names, mark = _read_element(element)
        if names not in indexes:
            indexes[names] = {_mark_of(item, names): place for place, item in enumerate(items)}
        if (place := indexes[names].get(mark)) is not None:
            found[element] = place
    if len(found) == len(items):
        return found
    left = [place for place in range(len(items)) if place not in set(found.values())]
    for element in owned:
        place = next((place for place in left if _fits(element, items[place])), None)
        if element not in found and place is not None:
            found[element] = place
            left.remove(place)
    return found


@lru_cache(512)
def _read_element(element: str) -> tuple[tuple[str, ...], Any]:
    """Give the names of the keys of an item, none in a set, and the mark that it is found by."""
    value = json.loads(element[2:])
    names = tuple(sorted(value)) if element[:2] == "k:" else ()
    return names, _mark_of(value, names)


def _mark_of(item: Any, names: tuple[str, ...]) -> Any:
    """Give what equal items have alike, and only they: as JSON, since `1`, `1.0` and `true` differ there."""
    if not names:
        return _text(item)
    if not isinstance(item, dict):
        return None
    values = [item.get(name) for name in names]
    if all(type(value) is str for value in values):
        return values[0] if len(values) == 1 else tuple(values)
    return None if any(name not in item for name in names) else _text(values)


def _fits(element: str, item: Any) -> bool:
    """Tell whether an item that leaves out keys may be this one."""
    if element[:2] != "k:" or not isinstance(item, dict):
        return False
    keys = json.loads(element[2:])
    written = [name for name in keys if name in item]
    return 0 < len(written) < len(keys) and all(_same(keys[name], item[name]) for name in written)


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON does: `1`, `1.0` and `true` are three different values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
