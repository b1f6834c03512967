"""Fields that a class does not know, carried from an object of one version to its twin in another.

A converter is written with classes, and what the classes do not know it cannot carry. Rules of what happens to it:

1. A field that the class of the source does not know goes to the same place in the target, when that place is there.
2. What the target says stays: a field that its class knows, or that is there already, is not touched.
3. Items of lists are followed by `name`, and without names by place, in lists of one length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge.objects import Model
from konverge.objects.models import attributes

__all__ = ["carry_unknown"]


def carry_unknown(source: Any, raw: Any, target: Any, written: Any) -> None:
    """Put into `written` what `raw` holds and `source` does not know.

    `source` and `target` are typed values, `raw` and `written` the same as plain JSON.
    """
    if isinstance(source, Model) and isinstance(raw, dict) and isinstance(written, dict):
        _carry_fields(source, raw, target, written)
    elif isinstance(source, dict) and isinstance(raw, dict) and isinstance(target, dict) and isinstance(written, dict):
        for key in raw.keys() & source.keys() & target.keys() & written.keys():
            carry_unknown(source[key], raw[key], target[key], written[key])
    elif isinstance(source, list) and isinstance(raw, list) and isinstance(target, list) and isinstance(written, list):
        for one, other in _pairs(raw, written):
            if one < len(source) and other < len(target):
                carry_unknown(source[one], raw[one], target[other], written[other])


def _carry_fields(source: Model, raw: dict[str, Any], target: Any, written: dict[str, Any]) -> None:
    known = attributes(type(source))
    places = attributes(type(target)) if isinstance(target, Model) else {}
    for key, value in raw.items():
        if key not in known:
            if key not in places and key not in written:
                written[key] = value
        elif key in places and key in written:
            carry_unknown(getattr(source, known[key]), value, getattr(target, places[key]), written[key])


def _pairs(raw: list[Any], written: list[Any]) -> Iterator[tuple[int, int]]:
    places = {name: place for place, item in enumerate(written) if (name := _name_of(item)) is not None}
    for place, item in enumerate(raw):
        name = _name_of(item)
        if name in places:
            yield place, places[name]
        elif name is None and len(raw) == len(written) and _name_of(written[place]) is None:
            yield place, place


def _name_of(item: Any) -> Any:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None
