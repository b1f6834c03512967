"""Functions on lists: the Kubernetes and extended lists libraries, sets, and the insertion for `transformMap`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any, Final

from konverge_cluster.cel.arithmetic import add
from konverge_cluster.cel.functions import Library
from konverge_cluster.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    list_of,
    map_of,
    param,
)
from konverge_cluster.cel.values import Duration, EvaluationError, UInt, equal, less

__all__ = ["add_lists"]

_COMPARABLE: Final = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "string": STRING,
    "bytes": BYTES,
}
_SUMMED: Final[dict[str, tuple[Any, Any]]] = {
    "int": (INT, 0),
    "uint": (UINT, UInt(0)),
    "double": (DOUBLE, 0.0),
    "duration": (DURATION, Duration(0)),
}


def add_lists(library: Library) -> None:
    """Add the functions of this module to a library."""
    _add_kubernetes(library)
    _add_extended(library)
    _add_sets(library)
    k, v = param("K"), param("V")
    maps = map_of(k, v)
    library.add("cel.@mapInsert", "@mapInsert_map_key_value", (maps, k, v), maps, _insert)
    library.add("cel.@mapInsert", "@mapInsert_map_map", (maps, maps), maps, _insert_all)


def _add_kubernetes(library: Library) -> None:
    for name, kind in _COMPARABLE.items():
        items = (list_of(kind),)
        library.test("isSorted", f"list_{name}_is_sorted_bool", items, _is_sorted)
        library.method("max", f"list_{name}_max_{name}", items, kind, _extreme("max", lambda a, b: less(b, a)))
        library.method("min", f"list_{name}_min_{name}", items, kind, _extreme("min", less))
    for name, (kind, zero) in _SUMMED.items():
        library.method("sum", f"list_{name}_sum_{name}", (list_of(kind),), kind, _sum(zero))
    a = param("A")
    library.method("indexOf", "list_a_index_of_int", (list_of(a), a), INT, _index_of)
    library.method("lastIndexOf", "list_a_last_index_of_int", (list_of(a), a), INT, _last_index_of)


def _is_sorted(items: list[Any]) -> bool:
    return not any(less(items[at + 1], items[at]) for at in range(len(items) - 1))


def _extreme(name: str, better: Callable[[Any, Any], bool]) -> Callable[[list[Any]], Any]:
    def choose(items: list[Any]) -> Any:
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        best = items[0]
        for each in items[1:]:
            best = each if better(each, best) else best
        return best

    return choose


def _sum(zero: Any) -> Callable[[list[Any]], Any]:
    def total(items: list[Any]) -> Any:
        found = zero
        for each in items:
            found = add(found, each)
        return found

    return total


def _index_of(items: list[Any], value: Any) -> int:
    return next((at for at, each in enumerate(items) if equal(each, value)), -1)


def _last_index_of(items: list[Any], value: Any) -> int:
    return next((at for at in range(len(items) - 1, -1, -1) if equal(items[at], value)), -1)


def _add_extended(library: Library) -> None:
    t = param("T")
    items = list_of(t)
    library.method("slice", "list_slice", (items, INT, INT), items, _slice)
    library.method("flatten", "list_flatten", (list_of(items),), items, lambda each: _flatten(each, 1))
    library.method("flatten", "list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten)
    library.add("lists.range", "lists_range", (INT,), list_of(INT), lambda count: list(range(count)))
    library.method("reverse", "list_reverse", (items,), items, lambda each: list(reversed(each)))
    library.method("distinct", "list_distinct", (items,), items, _distinct)
    for name, kind in _COMPARABLE.items():
        keys = list_of(kind)
        library.method("sort", f"list_{name}_sort", (keys,), keys, lambda each: _sorted(each, each))
        overload = f"list_{name}_sortByAssociatedKeys"
        library.method("@sortByAssociatedKeys", overload, (items, keys), items, _sorted)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    what = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvaluationError(f"{what}, negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{what}, start index must be less than or equal to end index")
    if len(items) < end:
        raise EvaluationError(f"{what}, list is length {len(items)}")
    return list(items[start:end])


def _flatten(items: list[Any], depth: int) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    found: list[Any] = []
    for each in items:
        found += _flatten(each, depth - 1) if isinstance(each, list) and depth > 0 else [each]
    return found


def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for each in items:
        if not any(equal(each, other) for other in found):
            found.append(each)
    return found


def _sorted(items: list[Any], keys: list[Any]) -> list[Any]:
    if len({type(key) for key in keys}) > 1:
        raise EvaluationError("list elements must have the same type")
    compare = cmp_to_key(lambda one, other: -1 if less(one, other) else int(less(other, one)))
    order = sorted(range(len(items)), key=lambda at: compare(keys[at]))
    return [items[at] for at in order]


def _add_sets(library: Library) -> None:
    t = param("T")
    lists = (list_of(t), list_of(t))
    library.add("sets.contains", "list_sets_contains_list", lists, BOOL, _has_all)
    library.add(
        "sets.equivalent", "list_sets_equivalent_list", lists, BOOL, lambda a, b: _has_all(a, b) and _has_all(b, a)
    )
    library.add(
        "sets.intersects", "list_sets_intersects_list", lists, BOOL, lambda a, b: any(_has(b, each) for each in a)
    )


def _has(items: list[Any], value: Any) -> bool:
    return any(equal(value, each) for each in items)


def _has_all(items: list[Any], others: list[Any]) -> bool:
    return all(_has(items, each) for each in others)


def _insert(target: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    if key in target:
        raise EvaluationError(f"insert failed: key {key} already exists")
    return {**target, key: value}


def _insert_all(target: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in more.items():
        target = _insert(target, key, value)
    return target
