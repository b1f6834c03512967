"""Correlation of old and new values, for ratcheting.

On an update, an unchanged value may stay invalid. The old value is found along the schema: by the name of a
field, by the key of a map, by the keys of the items of a list of type map. Items of other lists have no old value: such
a list is compared as a whole.
"""

from __future__ import annotations

from typing import Any

from konverge_cluster.crds.structural import Structural

__all__ = ["Correlation", "items_by_key", "key_of", "same"]


def items_by_key(schema: Structural, items: Any) -> dict[Any, Any]:
    """Return the items of a list of type map by the values of their keys."""
    if schema.list_type != "map" or not schema.map_keys or not isinstance(items, list):
        return {}
    found: dict[Any, Any] = {}
    for item in items:
        if isinstance(item, dict):
            found.setdefault(key_of(schema, item), item)
    return found


def key_of(schema: Structural, item: dict[str, Any]) -> Any:
    """Return the key of an item in a list of type map; an absent key counts like any other value."""
    return tuple((type(item.get(name)), _hashable(item.get(name))) for name in schema.map_keys)


def _hashable(value: Any) -> Any:
    return value if not isinstance(value, (dict, list)) else repr(value)


class Correlation:
    """A new value and its old value.

    `unchanged` is computed once. A field that is not in the schema makes its object count as changed.
    """

    __slots__ = ("_children", "_old_items", "_same", "new", "old", "schema")

    def __init__(self, new: Any, old: Any, schema: Structural) -> None:
        self.new = new
        self.old = old
        self.schema = schema
        self._children: dict[str | int, Correlation] = {}
        self._old_items: dict[Any, Any] | None = None
        self._same: bool | None = None

    def key(self, name: str) -> Correlation | None:
        """Return the pair of a field or of a map key; None if one of the two is missing or has no schema."""
        found = self._children.get(name)
        if found is not None:
            return found
        if not isinstance(self.new, dict) or not isinstance(self.old, dict):
            return None
        if name not in self.new or name not in self.old:
            return None
        schema = self.schema.child(name)
        if schema is None:
            return None
        found = self._children[name] = Correlation(self.new[name], self.old[name], schema)
        return found

    def index(self, at: int) -> Correlation | None:
        """Return the pair of an item; None unless the list is of type map and had an item with the same keys."""
        found = self._children.get(at)
        if found is not None:
            return found
        old = self._old_item(at)
        if old is None or self.schema.items is None:
            return None
        found = self._children[at] = Correlation(self.new[at], old, self.schema.items)
        return found

    def _old_item(self, at: int) -> Any:
        if not isinstance(self.new, list) or not isinstance(self.old, list) or at >= len(self.new):
            return None
        if self.schema.list_type != "map" or not isinstance(self.new[at], dict):
            return None
        if self._old_items is None:
            self._old_items = items_by_key(self.schema, self.old)
        return self._old_items.get(key_of(self.schema, self.new[at]))

    def unchanged(self) -> bool:
        """Report whether the new value equals the old one."""
        if self._same is None:
            self._same = self._compare()
        return self._same

    def _compare(self) -> bool:
        new, old = self.new, self.old
        if type(new) is not type(old):
            return False
        if isinstance(new, dict):
            return len(new) == len(old) and all(_is_unchanged(self.key(name)) for name in new)
        if isinstance(new, list):
            if self.schema.list_type != "map":
                return same(new, old)
            return len(new) == len(old) and all(_is_unchanged(self.index(at)) for at in range(len(new)))
        return bool(new == old)


def _is_unchanged(pair: Correlation | None) -> bool:
    return pair is not None and pair.unchanged()


def same(one: Any, other: Any) -> bool:
    """Report whether two JSON values are equal, types included: 1 is neither 1.0 nor true."""
    if type(one) is not type(other):
        return False
    if type(one) is dict:
        return one.keys() == other.keys() and all(same(each, other[key]) for key, each in one.items())
    if type(one) is list:
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
