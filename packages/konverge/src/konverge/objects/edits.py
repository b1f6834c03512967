"""The edits of an object, without loss of fields that its class does not know.

A decoded object keeps its source bytes. From the source, the source as the class decodes it (*before*) and the present
state of the object (*after*) follow:

- `full_object(obj)`: the complete object to write, which is the source with the edits; `full_object_bytes(obj)` is its
  JSON;
- `is_changed(obj)`: whether there are edits;
- `difference(obj)`: the edits alone, as a JSON merge patch (RFC 7386); empty when there are none.

Rules:

1. Everything that the class does not know is unchanged: unknown fields, nulls, empty lists, at any depth.
2. Items of a list are matched by equality first, then by `name` (a condition by its `type`), then, in lists of equal
   length, by index; an item without a match is new, and no unknown fields are added to it.
3. A merge patch replaces a list as a whole, so the patch contains the whole list with its unknown fields.
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.objects.codec import decode, encode_in_order, to_wire
from konverge.objects.resources import AnyObject, Resource, Unstructured

__all__ = ["difference", "full_object", "full_object_bytes", "full_object_from", "is_changed", "is_same", "merge_patch"]

_plain = msgspec.json.Decoder()
_ABSENT = object()


def is_changed(obj: Resource) -> bool:
    """Report whether an object differs from its source, or was not decoded. It costs much less than `difference`."""
    source = obj.source
    return source is None or encode_in_order(obj) != encode_in_order(decode(type(obj), source))


def full_object_bytes(obj: AnyObject) -> bytes:
    """Return the JSON of `full_object`; equal objects have equal bytes."""
    return encode_in_order(obj if isinstance(obj, Unstructured) or obj.source is None else full_object(obj))


def full_object(obj: AnyObject) -> dict[str, Any]:
    """Return the complete object as plain JSON values: its source with the edits."""
    if isinstance(obj, Unstructured) or obj.source is None:
        return to_wire(obj)
    return full_object_from(obj, _plain.decode(obj.source))


def full_object_from(obj: Resource, source: dict[str, Any]) -> dict[str, Any]:
    """Return the decoded source with the edits; fields without edits are the very values of the source."""
    before, after = _before(obj), to_wire(obj)
    if "status" in source:
        # An empty status is not encoded; here it means that the status became empty, not that it was removed.
        before.setdefault("status", {})
        after.setdefault("status", {})
    merged: dict[str, Any] = _merge(source, before, after)
    return merged


def difference(obj: Resource) -> dict[str, Any]:
    """Return the edits since the object was decoded, as a JSON merge patch; empty when there are none.

    Raises: ValueError for an object that was not decoded: there is nothing to compare it with.
    """
    if obj.source is None:
        raise ValueError(f"{obj.kind} {obj.key} was not read from the server (create or apply it)")
    source = _plain.decode(obj.source)
    patch: dict[str, Any] = merge_patch(source, full_object_from(obj, source))
    return patch


def merge_patch(old: Any, new: Any) -> Any:
    """Return the JSON merge patch that turns `old` into `new`, both JSON objects."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key, _ABSENT)
        if before is value:
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            inner = merge_patch(before, value)
            if inner:
                patch[key] = inner
        elif not is_same(before, value):
            patch[key] = value
    return patch


def _before(obj: Resource) -> Any:
    assert obj.source is not None
    return to_wire(decode(type(obj), obj.source))


def _merge(source: Any, before: Any, after: Any) -> Any:
    if is_same(before, after):
        return source
    if isinstance(source, dict) and isinstance(before, dict) and isinstance(after, dict):
        return _merge_fields(source, before, after)
    if isinstance(source, list) and isinstance(before, list) and isinstance(after, list):
        return _merge_items(source, before, after)
    return after


def _merge_fields(source: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    result = {key: value for key, value in source.items() if key not in before or key in after}
    for key, value in after.items():
        if key not in before:
            result[key] = value
        elif key in source:
            result[key] = _merge(source[key], before[key], value)
        elif not is_same(before[key], value):
            # A default of the class that is not in the source: only an edit of it is written.
            result[key] = value
    return result


def _merge_items(source: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    origins = _origins(before, after)
    return [
        item if origin is None else _merge(source[origin], before[origin], item)
        for item, origin in zip(after, origins, strict=True)
    ]


def _origins(before: list[Any], after: list[Any]) -> list[int | None]:
    """Return for each item of `after` the index of its match in `before`, or None."""
    unmatched = set(range(len(before)))
    origins: list[int | None] = [None] * len(after)

    def match(index: int, origin: int | None) -> None:
        if origins[index] is None and origin in unmatched:
            origins[index] = origin
            unmatched.discard(origin)

    for index, item in enumerate(after):
        match(index, next((i for i in sorted(unmatched) if is_same(before[i], item)), None))
    names = {name: i for i, item in enumerate(before) if (name := _name_of(item)) is not None}
    for index, item in enumerate(after):
        match(index, names.get(_name_of(item)))
    if len(before) == len(after):
        for index in range(len(after)):
            if _name_of(after[index]) is None:
                match(index, index)
    return origins


def _name_of(item: Any) -> Any:
    if not isinstance(item, dict):
        return None
    name = item.get("type") if "status" in item and "name" not in item else item.get("name")
    return name if isinstance(name, str) else None


def is_same(one: Any, other: Any) -> bool:
    """Report whether two JSON values are equal: `1`, `1.0` and `true` are three different values."""
    if type(one) is not type(other) or one != other:
        return False
    if isinstance(one, dict):
        return all(map(is_same, one.values(), map(other.__getitem__, one)))
    return not isinstance(one, list) or all(map(is_same, one, other))
