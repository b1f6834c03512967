"""Set the defaults of a structural schema, in place.

A default replaces a missing field, or a null that is not nullable. Defaults of map values and of list items
only replace such a null. Values that a default adds are defaulted in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge_cluster.crds.structural import Structural

__all__ = ["compile_defaulter", "copy_json"]

Defaulter = Callable[[Any], None]


def compile_defaulter(schema: Structural) -> Defaulter | None:
    """Return the defaulter of a value; None if the schema has no defaults."""
    return _compile(schema)


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value."""
    if type(value) is dict:
        return {key: copy_json(each) for key, each in value.items()}
    return [copy_json(each) for each in value] if type(value) is list else value


def _compile(schema: Structural | None) -> Defaulter | None:
    if schema is None:
        return None
    fill_object = _compile_object(schema)
    fill_list = _compile_list(schema.items)
    if fill_object is None or fill_list is None:
        return fill_object or fill_list

    def fill(value: Any) -> None:
        fill_object(value)
        fill_list(value)

    return fill


def _compile_object(schema: Structural) -> Defaulter | None:
    defaults = {name: each for name, each in schema.properties.items() if each.default is not None}
    below = {name: walk for name, each in schema.properties.items() if (walk := _compile(each)) is not None}
    fill_values = _compile_values(schema)
    if not defaults and not below and fill_values is None:
        return None
    missing = [(name, each.default, each.nullable) for name, each in defaults.items()]

    def fill(value: Any) -> None:
        if type(value) is not dict:
            return
        for name, default, nullable in missing:
            if name not in value or (value[name] is None and not nullable):
                value[name] = copy_json(default)
        for name, walk in below.items():
            if name in value:
                walk(value[name])
        if fill_values is not None:
            fill_values(value)

    return fill


def _compile_values(schema: Structural) -> Defaulter | None:
    values, named = schema.values, schema.properties
    if values is None:
        return None
    walk = _compile(values)
    if walk is None and values.default is None:
        return None

    def fill(value: Any) -> None:
        for key, item in value.items():
            if key in named:
                continue
            if item is None and not values.nullable:
                value[key] = copy_json(values.default)
            if walk is not None:
                walk(value[key])

    return fill


def _compile_list(items: Structural | None) -> Defaulter | None:
    if items is None:
        return None
    walk = _compile(items)
    if walk is None and items.default is None:
        return None

    def fill(value: Any) -> None:
        if type(value) is not list:
            return
        for index, item in enumerate(value):
            if item is None and not items.nullable:
                value[index] = copy_json(items.default)
            if walk is not None:
                walk(value[index])

    return fill
