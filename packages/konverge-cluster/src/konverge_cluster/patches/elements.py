"""Path elements: the keys of a FieldsV1 document, each a step from a value to a part of it.

    f:name                the field or key `name` of a map         .name
    k:{"a":1,"b":"x"}     the list item with these key fields      [a=1,b="x"]
    v:"x"                 the item of a set                        [="x"]
    i:3                   the item at an index                     [3]

An element is one string. Its canonical form has sorted key fields and compact JSON, so equal elements are equal
strings. The right column is the form in messages.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from konverge_cluster.patches.go_text import compact_json, plain, quote
from konverge_cluster.patches.topology import SequenceType

__all__ = ["PathElementError", "canonical", "item_element", "sort_key", "text_of"]

_CACHE_SIZE = 8192


class PathElementError(ValueError):
    """Not a path element, or a list item that no path element can name."""


def item_element(sequence: SequenceType, item: Any) -> str:
    """Return the path element of an item of a granular list.

    Raises: PathElementError for an item that cannot be identified; the text is that of the real server.
    """
    if not sequence.keys:
        return "v:" + compact_json(_set_item(item))
    if item is None:
        raise PathElementError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise PathElementError("associative list with keys may not have non-map elements")
    if len(sequence.keys) == 1:
        only = sequence.keys[0]
        if only in item:
            return f"k:{{{compact_json(only)}:{compact_json(item[only])}}}"
    return _keyed(sequence, item)


def _set_item(item: Any) -> Any:
    if isinstance(item, dict):
        raise PathElementError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise PathElementError("not supported: associative list with lists as elements")
    if item is None:
        raise PathElementError("associative list without keys has an element that's an explicit null")
    return item


def _keyed(sequence: SequenceType, item: dict[str, Any]) -> str:
    found = {key: item[key] if key in item else sequence.default_of(key) for key in sequence.keys}
    # An explicit null is the key's value; a missing key without a default is omitted.
    named = {key: value for key, value in found.items() if value is not None or key in item}
    if not named:
        keys = "[" + " ".join(map(quote, sequence.keys)) + "]"
        raise PathElementError(
            f"associative list with keys has an element that omits all key fields {keys}"
            " (and doesn't have default values for any key fields)"
        )
    return "k:" + compact_json(named)


@lru_cache(_CACHE_SIZE)
def canonical(element: str) -> str | None:
    """Return the canonical form of an element; None for an unknown kind of element.

    Raises: PathElementError when it is not a path element.
    """
    kind, colon, rest = element[:1], element[1:2], element[2:]
    if colon != ":":
        raise PathElementError(f"missing colon: {element}" if len(element) > 1 else "key must be 2 characters long:")
    if kind == "f":
        return element
    if kind not in "kvi" or not kind:
        return None
    try:
        value = int(rest) if kind == "i" else json.loads(rest)
    except ValueError as error:
        raise PathElementError(str(error)) from error
    if kind == "k" and not isinstance(value, dict):
        raise PathElementError(f"key fields must be an object: {element}")
    return f"{kind}:{compact_json(value)}"


@lru_cache(_CACHE_SIZE)
def sort_key(element: str) -> tuple[Any, ...]:
    """Return the sort key of an element: first itself ("."), then fields, keyed items, set items, indexes."""
    kind, rest = element[:1], element[2:]
    if kind == ".":
        return (0,)
    if kind == "f":
        return (1, rest)
    value = json.loads(rest)
    if kind == "k":
        return (2, tuple((key, _value_sort_key(value[key])) for key in sorted(value)))
    return (3, _value_sort_key(value)) if kind == "v" else (4, value)


def _value_sort_key(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, list):
        return (3, tuple(map(_value_sort_key, value)))
    if isinstance(value, dict):
        return (4, tuple((key, _value_sort_key(value[key])) for key in sorted(value)))
    return (5,)


@lru_cache(_CACHE_SIZE)
def text_of(element: str) -> str:
    """Return an element in the form of messages."""
    kind, rest = element[:1], element[2:]
    if kind == "f":
        return "." + rest
    value = json.loads(rest)
    if kind == "k":
        return "[" + ",".join(f"{key}={_format_value(value[key])}" for key in sorted(value)) + "]"
    return f"[={_format_value(value)}]" if kind == "v" else f"[{value}]"


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_format_value, value)) + "]"
    return "null" if value is None else plain(value)
