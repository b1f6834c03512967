"""Compute the JSON patch (RFC 6902) between two states of a document.

Rules:

1. Applied in order to the old document, the operations produce the new one, for any two documents.
2. The patch names no field that did not change. Lists are compared from both ends; the items in the middle are compared
   by index.
3. Values are compared as in JSON: `1`, `1.0` and `true` are three different values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["json_patch"]

Step = dict[str, Any]


def json_patch(old: Any, new: Any) -> list[Step]:
    """Return the operations that turn `old` into `new`; none when they are equal."""
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
            yield {"op": "remove", "path": _join(path, key)}
    for key, value in new.items():
        if key in old:
            yield from _steps(old[key], value, _join(path, key))
        else:
            yield {"op": "add", "path": _join(path, key), "value": value}


def _items(old: list[Any], new: list[Any], path: str) -> Iterator[Step]:
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and _same(old[start], new[start]):
        start += 1
    end = 0
    while end < shorter - start and _same(old[-1 - end], new[-1 - end]):
        end += 1
    shared = shorter - end
    for index in range(start, shared):
        yield from _steps(old[index], new[index], f"{path}/{index}")
    # From the end, so that the indexes before do not change.
    for index in reversed(range(shared, len(old) - end)):
        yield {"op": "remove", "path": f"{path}/{index}"}
    for index in range(shared, len(new) - end):
        yield {"op": "add", "path": f"{path}/{index}", "value": new[index]}


def _join(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
