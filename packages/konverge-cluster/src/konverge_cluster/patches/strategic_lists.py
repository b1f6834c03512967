"""Lists in strategic merge patches: matching of items, and their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from konverge_cluster.patches.errors import PatchError, internal, invalid_patch
from konverge_cluster.patches.go_text import as_string, kind_of, plain

__all__ = [
    "DIRECTIVE",
    "apply_list_directives",
    "check_order",
    "element_kind",
    "in_order",
    "merge_keyed",
    "not_a_list",
    "unknown_directive",
    "without_duplicates",
]

DIRECTIVE = "$patch"

Merge = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


def unknown_directive(directive: Any, item: dict[str, Any]) -> PatchError:
    """Return the error for an unsupported value of `$patch`."""
    return internal(f"unknown patch type: {as_string(directive)} in map: {plain(item)}")


def not_a_list(value: Any) -> PatchError:
    """Return the error for a value that is not a list where one is required."""
    return internal(f"expected a []interface {{}}, but received a {'%!s(<nil>)' if value is None else kind_of(value)}")


def element_kind(*lists: list[Any]) -> str:
    """Return the common type of all items: "map" or a scalar type.

    Raises: PatchError when the types differ, when they are lists, or when there are no items.
    """
    kinds = [kind_of(item) for items in lists for item in items]
    if not kinds:
        raise internal("no elements in any of the given slices")
    if kinds[0] == "[]interface {}":
        raise invalid_patch()
    if any(kind != kinds[0] for kind in kinds):
        raise internal(f"list element types are not identical: {plain([list(items) for items in lists])}")
    return "map" if kinds[0].startswith("map") else kinds[0]


def without_duplicates(items: Iterable[Any]) -> list[Any]:
    """Return scalars without duplicates, in order."""
    unique: list[Any] = []
    for item in items:
        if item not in unique:
            unique.append(item)
    return unique


def apply_list_directives(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Apply the items with `$patch`; return the remaining live items and the items to merge."""
    items, live, replace = [], list(original), False
    for item in patch:
        directive = item.get(DIRECTIVE, item)
        if directive is item:
            items.append(item)
        elif directive == "delete":
            value = merge_value(item, key)
            live = [known for known in live if not (key in known and known[key] == value)]
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise internal("merging lists cannot yet be specified in the patch")
        else:
            raise unknown_directive(directive, item)
    return (items, []) if replace else (live, items)


def merge_keyed(live: list[Any], items: list[Any], key: str, merge: Merge) -> list[Any]:
    """Merge each item into the live item with its key, or append it."""
    merged = list(live)
    for item in items:
        value = merge_value(item, key)
        indexes = [index for index, known in enumerate(merged) if key in known and known[key] == value]
        if indexes:
            merged[indexes[0]] = merge(merged[indexes[0]], item)
        else:
            merged.append(item)
    return merged


def merge_value(item: dict[str, Any], key: str) -> Any:
    """Return the value of the merge key of an item.

    Raises: PatchError when the item does not have the key.
    """
    if key not in item:
        raise internal(f"map: {plain(item)} does not contain declared merge key: {key}")
    return item[key]


def in_order(merged: list[Any], *, desired: list[Any], live: list[Any], key: str) -> list[Any]:
    """Return a merged list in the order of `desired`; items that are only in `live` keep their positions there."""
    names = _names(merged, key)
    for index, item in enumerate(desired if key and merged else []):
        if not isinstance(item, dict):
            raise internal(f"value for key {index} is not a map")
    order, before = _names(desired, key), _names(live, key)
    from_order = _sorted([index for index, name in enumerate(names) if name in order], names, order)
    from_live = _sorted([index for index, name in enumerate(names) if name not in order], names, before)
    result: list[Any] = []
    while from_order and from_live:
        left, right = names[from_live[0]], names[from_order[0]]
        is_before = left in before and right in before and before.index(left) < before.index(right)
        result.append(merged[from_live.pop(0) if is_before else from_order.pop(0)])
    return result + [merged[index] for index in (*from_order, *from_live)]


def _sorted(indexes: list[int], names: list[Any], order: list[Any]) -> list[int]:
    """Sort indexes by the positions of their names in `order`; a name that is not in it comes first.

    The latter is the effect of the real server's insertion sort with a comparison that then always returns "before".
    """
    result: list[int] = []
    for index in indexes:
        at = len(result)
        while at and _is_before(names[index], names[result[at - 1]], order):
            at -= 1
        result.insert(at, index)
    return result


def _is_before(one: Any, other: Any, order: list[Any]) -> bool:
    if one in order and other in order:
        return order.index(one) < order.index(other)
    return True


def _names(items: list[Any], key: str) -> list[Any]:
    return [merge_value(item, key) if isinstance(item, dict) else item for item in items]


def check_order(items: list[Any], order: list[Any], key: str) -> None:
    """Check that the items of a patch are in the order of its `$setElementOrder`.

    Raises: PatchError when they are not.
    """
    if not items or not order:
        return
    waiting = [item for item in items if not (isinstance(item, dict) and item.get(DIRECTIVE) == "delete")]
    for desired in order:
        while waiting and isinstance(waiting[0], dict) and DIRECTIVE in waiting[0]:
            waiting.pop(0)
        if not waiting:
            return
        if _names(waiting[:1], key) == _names([desired], key):
            waiting.pop(0)
    # An item with another directive is reported as out of order if no item follows it in the order.
    if waiting:
        raise internal(
            f"The order in patch list:\n{plain(items)}\n doesn't match $setElementOrder list:\n{plain(order)}\n"
        )
