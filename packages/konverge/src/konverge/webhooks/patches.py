"""From two states of a document to the JSON patch (RFC 6902) between them.

Rules that hold here:

1. Applied in order to the old document, the operations give the new one, whatever the two are.
2. Nothing is named that did not change. A list is followed from both ends; what differs in the middle is compared place
   by place.
3. Values are compared as JSON does: `1`, `1.0` and `true` are three.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["json_patch"]

Step = dict[str, Any]


def json_patch(old: Any, new: Any) -> list[Step]:
    """Give the operations that turn `old` into `new`; none when they are the same."""
    return list(_steps(old, new, ""))


def _steps(old: Any, new: Any, path: str) -> Iterator[Step]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _fields(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _items(old, new, path)
    elif not _same(old, new):
        yield {"op": "replace", "path": path, "value": new}


def _fields(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Step]:
    for key in old:
        if key not in new:
            yield {"op": "remove", "path": _below(path, key)}
    for key, value in new.items():
        if key in old:
            yield from _steps(old[key], value, _below(path, key))
        else:
            yield {"op": "add", "path": _below(path, key), "value": value}


def _items(old: list[Any], new: list[Any], path: str) -> Iterator[Step]:
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and _same(old[start], new[start]):
        start += 1
    end = 0
    while end < shorter - start and _same(old[-1 - end], new[-1 - end]):
        end += 1
    shared = shorter - end
    for place in range(start, shared):
        yield from _steps(old[place], new[place], f"{path}/{place}")
    # From the back, so that the places before keep their numbers.
    for place in reversed(range(shared, len(old) - end)):
        yield {"op": "remove", "path": f"{path}/{place}"}
    for place in range(shared, len(new) - end):
        yield {"op": "add", "path": f"{path}/{place}", "value": new[place]}


def _below(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
