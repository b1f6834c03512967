"""The fields that a manager owns, and the values that an object has there.

managedFields list the fields of a server-side apply as a tree of path elements: `f:name` is a field, `k:{...}` an item
of a list by its keys, `v:...` an item of a set, `.` the element itself. Fields that the tree does not name belong to
others. Rules that hold here:

1. A leaf is compared as a whole: a scalar, an atomic list or map.
2. A change by another client removes the leaf from our tree. So a leaf that we own and want empty, and that has a value
   or is absent, is not a difference: others own parts of it, or the server leaves out empty values.
3. Items are found by their keys; a desired item may leave out a key that has a default. The order of items counts.
4. An empty list whose items have owners of their own has no owner: a desired empty list owns nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from konverge.objects import AnyObject, Resource, is_same

__all__ = [
    "Comparison",
    "FieldTree",
    "compare",
    "fields_of",
    "is_applied_by",
    "pick",
    "sets_no_fields",
    "without_empty_collections",
    "without_identity",
]

FieldTree: TypeAlias = dict[str, Any]
"""A FieldsV1 document."""

Json: TypeAlias = dict[str, Any]

_ABSENT: Any = object()
_SCALARS = frozenset({str, int, bool, float})
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode
_NOT_OWNED = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
)
"""Fields of metadata that no manager owns."""


class Comparison(Struct, frozen=True):
    """The values of the owned fields, and whether they match the desired state."""

    values: Any
    matches: bool


def fields_of(obj: Json, manager: str) -> FieldTree | None:
    """Return the fields that a manager owns by apply, in the API version of the object, or None."""
    for entry in obj.get("metadata", {}).get("managedFields") or ():
        if _is_apply_of(manager, entry) and entry.get("apiVersion") == obj.get("apiVersion"):
            return entry.get("fieldsV1") or {}
    return None


def is_applied_by(obj: AnyObject, manager: str) -> bool:
    """Report whether a manager has applied an object and still owns a field of it."""
    if isinstance(obj, Resource):
        entries = obj.metadata.managed_fields
        return any(one.manager == manager and one.operation == "Apply" and not one.subresource for one in entries)
    return any(_is_apply_of(manager, one) for one in obj.metadata.get("managedFields") or ())


def without_identity(document: Json) -> Json:
    """Return the fields of an object that can be owned: all but its kind, its name and the server's metadata."""
    rest = {name: value for name, value in document.items() if name not in ("apiVersion", "kind", "metadata")}
    metadata = {name: value for name, value in document.get("metadata", {}).items() if name not in _NOT_OWNED}
    return {"metadata": metadata, **rest} if metadata else rest


def compare(owned: FieldTree, live: Json, desired: Json) -> Comparison:
    """Compare the owned fields of a live object with the desired state, both as JSON values.

    They match if the desired state has exactly the owned fields, with the same values.
    """
    fields = without_identity(desired)
    if not _children(owned):
        return Comparison(None, not fields or _owns_nothing(fields, live))
    return Comparison(*_compare(owned, live, fields))


def sets_no_fields(desired: Json) -> bool:
    """Report whether an object has no field that could be owned [4]."""
    fields = without_identity(desired)
    return not fields or _owns_nothing(fields, _ABSENT)


def pick(owned: FieldTree, live: Any) -> Any:
    """Return the owned parts of a value, with the keys of the list items on the way, and nothing else."""
    children = _children(owned)
    types = {element[:2] for element in children}
    if types == {"f:"} and isinstance(live, dict):
        names = {element[2:]: child for element, child in children.items() if element[2:] in live}
        return {name: pick(child, live[name]) for name, child in names.items()}
    if types in ({"k:"}, {"v:"}) and isinstance(live, list):
        indexes = _item_indexes(children, live)
        return [_pick_item(element, children[element], live[index]) for element, index in indexes.items()]
    return live


def without_empty_collections(owned: FieldTree, desired: Any) -> Any:
    """Return the desired state without the maps and lists that become empty and have items that we own, or None.

    A server that is asked to empty such a collection stores null, rejects it, or drops its parent.
    """
    children = _children(owned)
    if not children or not isinstance(desired, dict | list):
        return desired
    if isinstance(desired, dict):
        result: Any = {
            name: rest
            for name, value in desired.items()
            if (rest := without_empty_collections(children.get(f"f:{name}", {}), value)) is not None or value is None
        }
    else:
        found = {index: children[element] for element, index in _item_indexes(children, desired).items()}
        result = [without_empty_collections(found.get(index, {}), item) for index, item in enumerate(desired)]
    return result or None


def _pick_item(element: str, owned: FieldTree, item: Any) -> Any:
    picked = pick(owned, item)
    return {**_decode(element[2:]), **picked} if element[:2] == "k:" else picked


def _is_apply_of(manager: str, entry: Json) -> bool:
    applied = entry.get("operation") == "Apply" and not entry.get("subresource")
    return applied and entry.get("manager") == manager


def _children(owned: FieldTree) -> FieldTree:
    return {element: child for element, child in owned.items() if element != "."} if "." in owned else owned


def _compare(owned: FieldTree, live: Any, desired: Any) -> tuple[Any, bool]:
    """Return the fields of a `Comparison` as a pair: there are dozens of them for one object."""
    if isinstance(live, dict):
        if _element_type(owned) == "f:":
            return _compare_fields(owned, live, desired)
    elif isinstance(live, list) and _element_type(owned) in ("k:", "v:"):
        return _compare_items(_children(owned), live, desired)
    return _compare_leaf(live, desired)


def _element_type(owned: FieldTree) -> str:
    """Return the prefix of the elements of a tree; "" for a leaf, and if the prefixes differ."""
    found = ""
    for element in owned:
        if element != "." and not (found and element.startswith(found)):
            if found:
                return ""
            found = element[:2]
    return found


def _compare_leaf(live: Any, desired: Any) -> tuple[Any, bool]:
    if _is_expected_empty(live, desired):
        return None, True
    return "absent" if live is _ABSENT else [live], is_same(live, desired)


def _is_expected_empty(live: Any, desired: Any) -> bool:
    """Report whether a leaf that should be empty matches, whatever its value [2]."""
    if live is _ABSENT:
        return desired is not _ABSENT and not desired
    return not desired and isinstance(desired, dict | list) and type(live) is type(desired)


def _owns_nothing(desired: Any, live: Any) -> bool:
    """Report whether desired fields cannot be owned and match: empty lists, or maps of nothing but these."""
    if isinstance(desired, dict):
        values = live if isinstance(live, dict) else {}
        return bool(desired) and all(_owns_nothing(one, values.get(name, _ABSENT)) for name, one in desired.items())
    return desired == [] and (live is _ABSENT or live == [])


def _compare_fields(owned: FieldTree, live: Json, desired: Any) -> tuple[Any, bool]:
    fields = desired if isinstance(desired, dict) else {}
    matches, values = True, {}
    for element, child in owned.items():
        if element != ".":
            name = element[2:]
            value, wanted = live.get(name, _ABSENT), fields.get(name, _ABSENT)
            if not child and type(value) is type(wanted) and type(value) in _SCALARS:
                # What `_compare` does, without four calls: most nodes of a tree are scalars.
                values[name], same = [value], value == wanted
            else:
                values[name], same = _compare(child, value, wanted)
            matches = matches and same and name in fields
    for name, value in fields.items():
        matches = matches and (name in values or _owns_nothing(value, live.get(name, _ABSENT)))
    return values, matches


def _compare_items(owned: FieldTree, live: list[Any], desired: Any) -> tuple[Any, bool]:
    live_indexes = _item_indexes(owned, live)
    desired_indexes = _item_indexes(owned, desired) if isinstance(desired, list) else {}
    matches = isinstance(desired, list) and len(desired_indexes) == len(owned) == len(desired)
    values = {}
    for element, child in owned.items():
        live_item = live[live_indexes[element]] if element in live_indexes else _ABSENT
        desired_item = desired[desired_indexes[element]] if element in desired_indexes else _ABSENT
        values[element], same = _compare(child, live_item, desired_item)
        matches = matches and same
    order = sorted(live_indexes, key=live_indexes.__getitem__)
    matches = matches and order == sorted(desired_indexes, key=desired_indexes.__getitem__)
    return [[element, values[element]] for element in order], matches


def _item_indexes(owned: FieldTree, items: list[Any]) -> dict[str, int]:
    """Return the index of each owned item in a list: found by all its keys, or by the keys that an item has."""
    found: dict[str, int] = {}
    by_keys: dict[tuple[str, ...], dict[Any, int]] = {}
    for element in owned:
        names, identity, _ = _parse_element(element)
        indexes = by_keys.get(names)
        if indexes is None:
            indexes = by_keys[names] = {_identity_of(item, names): index for index, item in enumerate(items)}
        index = indexes.get(identity)
        if index is not None:
            found[element] = index
    if len(found) == len(items):
        return found
    left = [index for index in range(len(items)) if index not in set(found.values())]
    for element in owned:
        if element not in found:
            for index in left:
                if _matches_partly(element, items[index]):
                    found[element] = index
                    left.remove(index)
                    break
    return found


@lru_cache(4096)
def _parse_element(element: str) -> tuple[tuple[str, ...], Any, Any]:
    """Return the names of an item's keys (none in a set), its identity in the list, and the keys themselves."""
    value = _decode(element[2:])
    names = tuple(sorted(value)) if element[:2] == "k:" else ()
    return names, _identity_of(value, names), value


def _identity_of(item: Any, names: tuple[str, ...]) -> Any:
    """Return a value that only equal items share. It is JSON text, where `1`, `1.0` and `true` differ."""
    if not names:
        return _encode(item)
    if not isinstance(item, dict):
        return None
    if len(names) == 1:
        value = item.get(names[0])
        if type(value) is str:
            return value
    return _encode([item[name] for name in names]) if all(map(item.__contains__, names)) else None


def _matches_partly(element: str, item: Any) -> bool:
    """Report whether an item that leaves out keys may be this element."""
    if element[:2] != "k:" or not isinstance(item, dict):
        return False
    keys = _parse_element(element)[2]
    present = [name for name in keys if name in item]
    return 0 < len(present) < len(keys) and all(is_same(keys[name], item[name]) for name in present)
