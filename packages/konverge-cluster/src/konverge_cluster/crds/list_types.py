"""Validation of list types: no equal items in a list of type set, no equal keys in a list of type map.

The first duplicate of an item is reported; further duplicates of it are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from konverge_cluster.api.field_errors import FieldError, duplicate, invalid
from konverge_cluster.crds.paths import FieldPath, format_path
from konverge_cluster.crds.printable_values import printable_value
from konverge_cluster.crds.structural import Structural

__all__ = ["compile_list_checks"]

ListCheck = Callable[[Any], list[FieldError]]
_Walk = Callable[[Any, FieldPath, list[FieldError]], None]

_encode = msgspec.json.Encoder(order="deterministic").encode


def compile_list_checks(schema: Structural) -> ListCheck | None:
    """Return the check of a whole object; None if the schema has no such list."""
    walk = _compile(schema)
    if walk is None:
        return None

    def check(value: Any) -> list[FieldError]:
        errors: list[FieldError] = []
        walk(value, None, errors)
        return errors

    return check


def _compile(schema: Structural | None) -> _Walk | None:
    if schema is None:
        return None
    walk_list = _compile_list(schema)
    below = {name: inner for name, each in schema.properties.items() if (inner := _compile(each)) is not None}
    walk_value = _compile(schema.values)
    if walk_list is None and walk_value is None and not below:
        return None

    def walk(value: Any, field_path: FieldPath, errors: list[FieldError]) -> None:
        if isinstance(value, list):
            if walk_list is not None:
                walk_list(value, field_path, errors)
        elif isinstance(value, dict):
            if walk_value is not None:
                for key, item in value.items():
                    walk_value(item, (field_path, f"[{key}]"), errors)
            for name, walk_member in below.items():
                if name in value:
                    walk_member(value[name], (field_path, f".{name}"), errors)

    return walk


def _compile_list(schema: Structural) -> _Walk | None:
    check = {"set": _check_set, "map": _map_check(schema)}.get(schema.list_type)
    walk_item = _compile(schema.items)
    if check is None and walk_item is None:
        return None

    def walk(value: Any, field_path: FieldPath, errors: list[FieldError]) -> None:
        if check is not None:
            check(value, field_path, errors)
        if walk_item is not None:
            for index, item in enumerate(value):
                walk_item(item, (field_path, index), errors)

    return walk


def _check_set(value: Any, field_path: FieldPath, errors: list[FieldError]) -> None:
    errors.extend(duplicate(format_path((field_path, at)), printable_value(value[at])) for at in _repeated(value))


def _map_check(schema: Structural) -> _Walk:
    names = schema.map_keys

    def check(value: Any, field_path: FieldPath, errors: list[FieldError]) -> None:
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                where = format_path((field_path, index))
                errors.append(invalid(where, printable_value(item), "must be an object for an array of list-type map"))
                return
        if _are_distinct(value, names):
            return
        keys = [{name: item[name] for name in names if name in item} if item is not None else {} for item in value]
        errors.extend(duplicate(format_path((field_path, at)), printable_value(keys[at])) for at in _repeated(keys))

    return check


def _are_distinct(items: list[Any], names: tuple[str, ...]) -> bool:
    """Report whether no two items have equal keys, by a fast check; False means that a full check is needed."""
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
        # Types matter: 1 and "1", 1 and true are different items.
        mark = (type(value), value if isinstance(value, (str, int, float)) or value is None else _encode(value))
        seen[mark] = seen.get(mark, 0) + 1
        if seen[mark] == 2:
            repeated.append(index)
    return repeated
