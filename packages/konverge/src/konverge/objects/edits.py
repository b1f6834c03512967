"""What an edit changed, and how to write it without losing what the class does not know.

An object that was decoded remembers its source bytes. From the source, what the class read of it (*before*) and what
it says now (*after*), two things follow:

- `whole(obj)`: the complete object to write: the source with just the edit worked in;
- `difference(obj)`: the edit alone, as a JSON merge patch (RFC 7386); empty when nothing was changed.

Rules that hold here:

1. What the class does not know stays as it came: unknown fields, nulls, empty lists, at any depth.
2. Items of a list are followed by equality first, then by `name` (a condition by its `type`), then, in lists of one
   length, by place; an item that cannot be followed is new and carries nothing over.
3. A merge patch replaces a list as a whole, so the patch holds the whole list, unknown fields included.
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.objects.codec import decode, to_wire
from konverge.objects.resources import AnyObject, Resource, Unstructured

__all__ = ["difference", "merge_patch", "whole"]

_plain = msgspec.json.Decoder()
_ABSENT = object()


def whole(obj: AnyObject) -> dict[str, Any]:
    """Give the complete object as plain JSON values: all it came with, and the edit."""
    if isinstance(obj, Unstructured) or obj.source is None:
        return to_wire(obj)
    source = _plain.decode(obj.source)
    before, after = _before(obj), to_wire(obj)
    if "status" in source:
        # A status that says nothing is not written; here it is one that became empty, not one that was taken away.
        before.setdefault("status", {})
        after.setdefault("status", {})
    merged: dict[str, Any] = _carry(source, before, after)
    return merged


def difference(obj: Resource) -> dict[str, Any]:
    """Give what was edited since the object was decoded, as a JSON merge patch; empty when nothing was.

    Raises: ValueError for an object that was not decoded: there is nothing to compare it with.
    """
    if obj.source is None:
        raise ValueError(f"{obj.kind} {obj.key} was made here, not read: create or apply it instead")
    patch: dict[str, Any] = merge_patch(_plain.decode(obj.source), whole(obj))
    return patch


def merge_patch(old: Any, new: Any) -> Any:
    """Give the JSON merge patch that turns `old` into `new`, both JSON objects."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        was = old.get(key, _ABSENT)
        if isinstance(value, dict) and isinstance(was, dict):
            inner = merge_patch(was, value)
            if inner:
                patch[key] = inner
        elif not _same(was, value):
            patch[key] = value
    return patch


def _before(obj: Resource) -> Any:
    assert obj.source is not None
    return to_wire(decode(type(obj), obj.source))


def _carry(source: Any, before: Any, after: Any) -> Any:
    if _same(before, after):
        return source
    if isinstance(source, dict) and isinstance(before, dict) and isinstance(after, dict):
        return _carry_fields(source, before, after)
    if isinstance(source, list) and isinstance(before, list) and isinstance(after, list):
        return _carry_items(source, before, after)
    return after


def _carry_fields(source: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    result = {key: value for key, value in source.items() if key not in before or key in after}
    for key, value in after.items():
        if key not in before:
            result[key] = value
        elif key in source:
            result[key] = _carry(source[key], before[key], value)
        elif not _same(before[key], value):
            # The class filled in a default that was not on the wire: only an edit of it is written.
            result[key] = value
    return result


def _carry_items(source: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    origins = _origins(before, after)
    return [
        item if origin is None else _carry(source[origin], before[origin], item)
        for item, origin in zip(after, origins, strict=True)
    ]


def _origins(before: list[Any], after: list[Any]) -> list[int | None]:
    """Find for each item of `after` the place in `before` that it comes from."""
    left = set(range(len(before)))
    origins: list[int | None] = [None] * len(after)

    def follow(place: int, found: int | None) -> None:
        if origins[place] is None and found in left:
            origins[place] = found
            left.discard(found)

    for place, item in enumerate(after):
        follow(place, next((i for i in sorted(left) if _same(before[i], item)), None))
    names = {name: i for i, item in enumerate(before) if (name := _name_of(item)) is not None}
    for place, item in enumerate(after):
        follow(place, names.get(_name_of(item)))
    if len(before) == len(after):
        for place in range(len(after)):
            if _name_of(after[place]) is None:
                follow(place, place)
    return origins


def _name_of(item: Any) -> Any:
    if not isinstance(item, dict):
        return None
    name = item.get("type") if "status" in item and "name" not in item else item.get("name")
    return name if isinstance(name, str) else None


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON does: `1`, `1.0` and `true` are three different values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
