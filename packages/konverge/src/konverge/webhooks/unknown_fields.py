"""Copy the fields that a class does not know from an object of one version to the converted object.

A converter is written with classes, so it cannot copy fields that the classes do not know. Rules:

1. A field that the class of the source does not know is copied to the same place in the target, if that place exists.
2. The target wins: a field that its class knows, or that already exists, is not changed.
3. Items of lists are matched by `name`, and without names by index in lists of the same length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge.objects import Model
from konverge.objects.models import attributes

__all__ = ["copy_unknown_fields"]


def copy_unknown_fields(source: Any, raw: Any, target: Any, written: Any) -> None:
    """Copy into `written` the fields of `raw` that `source` does not know.

    `source` and `target` are typed values, `raw` and `written` the same values as plain JSON.
    """
    if isinstance(source, Model) and isinstance(raw, dict) and isinstance(written, dict):
        _copy_fields(source, raw, target, written)
    elif isinstance(source, dict) and isinstance(raw, dict) and isinstance(target, dict) and isinstance(written, dict):
        for key in raw.keys() & source.keys() & target.keys() & written.keys():
            copy_unknown_fields(source[key], raw[key], target[key], written[key])
    elif isinstance(source, list) and isinstance(raw, list) and isinstance(target, list) and isinstance(written, list):
        for one, other in _matching_items(raw, written):
            if one < len(source) and other < len(target):
                copy_unknown_fields(source[one], raw[one], target[other], written[other])


def _copy_fields(source: Model, raw: dict[str, Any], target: Any, written: dict[str, Any]) -> None:
    known = attributes(type(source))
    target_fields = attributes(type(target)) if isinstance(target, Model) else {}
    for key, value in raw.items():
        if key not in known:
            if key not in target_fields and key not in written:
                written[key] = value
        elif key in target_fields and key in written:
            copy_unknown_fields(getattr(source, known[key]), value, getattr(target, target_fields[key]), written[key])


def _matching_items(raw: list[Any], written: list[Any]) -> Iterator[tuple[int, int]]:
    indexes = {name: index for index, item in enumerate(written) if (name := _name_of(item)) is not None}
    for index, item in enumerate(raw):
        name = _name_of(item)
        if name in indexes:
            yield index, indexes[name]
        elif name is None and len(raw) == len(written) and _name_of(written[index]) is None:
            yield index, index


def _name_of(item: Any) -> Any:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None
