"""Lists in strategic merge patches: matching items, and their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from konverge_cluster.patches.errors import PatchError, internal, invalid_patch
from konverge_cluster.patches.go_text import as_string, kind_of, plain

__all__ = [
    "DIRECTIVE",
    "check_order",
    "element_kind",
    "in_order",
    "merge_keyed",
    "no_list",
    "split_specials",
    "unknown_directive",
    "without_duplicates",
]

DIRECTIVE = "$patch"

Merge = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


def unknown_directive(directive: Any, item: dict[str, Any]) -> PatchError:
    """Say that `$patch` has a value that means nothing here."""
    return internal(f"unknown patch type: {as_string(directive)} in map: {plain(item)}")


def no_list(value: Any) -> PatchError:
    """Say that something stands where a list must."""
    return internal(f"expected a []interface {{}}, but received a {'%!s(<nil>)' if value is None else kind_of(value)}")


def element_kind(*lists: list[Any]) -> str:
    """Name the one kind of all items: "map" or a scalar's.

    Raises: PatchError when there are several, when they are lists, or when there is no item at all.
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
    """Keep the first of equal scalars."""
    kept: list[Any] = []
    for item in items:
        if item not in kept:
            kept.append(item)
    return kept


def split_specials(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Work in the items that carry `$patch`, and give (the live items that stay, the items to merge)."""
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
    """Merge each item into the live one of its key, or add it."""
    merged = list(live)
    for item in items:
        value = merge_value(item, key)
        places = [place for place, known in enumerate(merged) if key in known and known[key] == value]
        if places:
            merged[places[0]] = merge(merged[places[0]], item)
        else:
            merged.append(item)
    return merged


def merge_value(item: dict[str, Any], key: str) -> Any:
    """Read the merge key of an item."""
    if key not in item:
        raise internal(f"map: {plain(item)} does not contain declared merge key: {key}")
    return item[key]


def in_order(merged: list[Any], *, desired: list[Any], live: list[Any], key: str) -> list[Any]:
    """Order a merged list: by `wanted`, with what only the live list has fitted in where `live` has it."""
    names = _names(merged, key)
    for place, item in enumerate(desired if key and merged else []):
        if not isinstance(item, dict):
            raise internal(f"value for key {place} is not a map")
    order, was = _names(desired, key), _names(live, key)
    ours = _sorted([place for place, name in enumerate(names) if name in order], names, order)
    theirs = _sorted([place for place, name in enumerate(names) if name not in order], names, was)
    result: list[Any] = []
    while ours and theirs:
        left, right = names[theirs[0]], names[ours[0]]
        is_before = left in was and right in was and was.index(left) < was.index(right)
        result.append(merged[theirs.pop(0) if is_before else ours.pop(0)])
    return result + [merged[place] for place in (*ours, *theirs)]


def _sorted(places: list[int], names: list[Any], order: list[Any]) -> list[int]:
    """Sort places by where their names stand in `order`; one whose name does not stand there goes to the front.

    The latter is what the real server's insertion sort makes of a comparison that always says "before".
    """
    result: list[int] = []
    for place in places:
        at = len(result)
        while at and _is_before(names[place], names[result[at - 1]], order):
            at -= 1
        result.insert(at, place)
    return result


def _is_before(one: Any, other: Any, order: list[Any]) -> bool:
    if one in order and other in order:
        return order.index(one) < order.index(other)
    return True


def _names(items: list[Any], key: str) -> list[Any]:
    return [merge_value(item, key) if isinstance(item, dict) else item for item in items]


def check_order(items: list[Any], order: list[Any], key: str) -> None:
    """Check that the items of a patch stand in the order that the patch demands.

    Raises: PatchError when they do not.
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
    # Other directives count as items out of order when nothing follows that they could stand before.
    if waiting:
        raise internal(
            f"The order in patch list:\n{plain(items)}\n doesn't match $setElementOrder list:\n{plain(order)}\n"
        )
