"""No two items of a list of type set are equal, no two items of a list of type map have the same keys.

The first item that repeats another is named; further copies of it are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from konverge_cluster.api.field_errors import FieldError, duplicate, invalid
from konverge_cluster.crds.paths import Place, text_of
from konverge_cluster.crds.shown import shown
from konverge_cluster.crds.structural import Structural

__all__ = ["compile_uniqueness"]

Uniqueness = Callable[[Any], list[FieldError]]
_Walk = Callable[[Any, Place, list[FieldError]], None]

_encode = msgspec.json.Encoder(order="deterministic").encode


def compile_uniqueness(schema: Structural) -> Uniqueness | None:
    """Make the check of a whole object; None when the schema has no such list."""
    walk = _compile(schema)
    if walk is None:
        return None

    def check(value: Any) -> list[FieldError]:
        problems: list[FieldError] = []
        walk(value, None, problems)
        return problems

    return check


def _compile(schema: Structural | None) -> _Walk | None:
    if schema is None:
        return None
    walk_list = _compile_list(schema)
    below = {name: inner for name, each in schema.properties.items() if (inner := _compile(each)) is not None}
    walk_value = _compile(schema.values)
    if walk_list is None and walk_value is None and not below:
        return None

    def walk(value: Any, place: Place, problems: list[FieldError]) -> None:
        if isinstance(value, list):
            if walk_list is not None:
                walk_list(value, place, problems)
        elif isinstance(value, dict):
            if walk_value is not None:
                for key, item in value.items():
                    walk_value(item, (place, f"[{key}]"), problems)
            for name, walk_member in below.items():
                if name in value:
                    walk_member(value[name], (place, f".{name}"), problems)

    return walk


def _compile_list(schema: Structural) -> _Walk | None:
    check = {"set": _check_set, "map": _map_check(schema)}.get(schema.list_type)
    walk_item = _compile(schema.items)
    if check is None and walk_item is None:
        return None

    def walk(value: Any, place: Place, problems: list[FieldError]) -> None:
        if check is not None:
            check(value, place, problems)
        if walk_item is not None:
            for index, item in enumerate(value):
                walk_item(item, (place, index), problems)

    return walk


def _check_set(value: Any, place: Place, problems: list[FieldError]) -> None:
    problems.extend(duplicate(text_of((place, at)), shown(value[at])) for at in _repeated(value))


def _map_check(schema: Structural) -> _Walk:
    names = schema.map_keys

    def check(value: Any, place: Place, problems: list[FieldError]) -> None:
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                where = text_of((place, index))
                problems.append(invalid(where, shown(item), "must be an object for an array of list-type map"))
                return
        if _are_distinct(value, names):
            return
        keys = [{name: item[name] for name in names if name in item} if item is not None else {} for item in value]
        problems.extend(duplicate(text_of((place, at)), shown(keys[at])) for at in _repeated(keys))

    return check


def _are_distinct(items: list[Any], names: tuple[str, ...]) -> bool:
    """Tell quickly that no two items have equal keys; False means that it takes a closer look."""
    try:
        return len({tuple(map(item.get, names)) for item in items}) == len(items)
    except (AttributeError, TypeError):
        return False


def _repeated(values: list[Any]) -> list[int]:
    try:
        if len(set(values)) == len(values):
            return []
    except TypeError:
        pass
    seen: dict[Any, int] = {}
    repeated = []
    for index, value in enumerate(values):
        # Types count: 1 and "1", 1 and true are different items.
        mark = (type(value), value if isinstance(value, (str, int, float)) or value is None else _encode(value))
        seen[mark] = seen.get(mark, 0) + 1
        if seen[mark] == 2:
            repeated.append(index)
    return repeated
