"""What differs between two states of an object, told from their JSON without reading all of it.

A document is cut into its fields, which stay raw; equal bytes are equal values, so only fields whose bytes differ are
decoded. Rules that hold here:

1. A field that is null is absent, and the order of fields means nothing.
2. In doubt there is a difference: a reconcile too many costs little, one too few is a bug. In doubt are documents that
   do not decode, and fields that the cache does not hold.
3. The same generation proves nothing about a field: ConfigMaps and Secrets have none, and a server may count otherwise.
   It is believed only where the cache holds nothing but metadata, since there it is the one witness.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from konverge.cache import Entry

__all__ = ["changed_outside_status", "content_changed", "differences_at", "names_of"]

Fields: TypeAlias = dict[str, msgspec.Raw]

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError)
_NULL = msgspec.Raw(b"null")

_HEAD = frozenset(("apiVersion", "kind", "metadata"))
_APART = frozenset(("metadata", "status"))
_BOOKKEEPING = frozenset(("resourceVersion", "managedFields"))

_NAME = re.compile(r"""\.([A-Za-z0-9_$-]+)|\["([^"\\]+)"\]|\['([^'\\]+)'\]""")

_fields: Callable[[bytes | msgspec.Raw], Fields] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value: Callable[[bytes | msgspec.Raw], Any] = msgspec.json.Decoder().decode
_canonical: Callable[[Any], bytes] = msgspec.json.Encoder(order="deterministic").encode


def changed_outside_status(old: Entry, new: Entry) -> bool:
    """Tell whether two states differ in anything but status, resourceVersion and managedFields."""
    if old.generation != new.generation or old.deleting != new.deleting:
        return True
    try:
        before, after = _fields(old.json), _fields(new.json)
        if _content_differs(old, new, before, after):
            return True
        return _differ(_fields(before["metadata"]), _fields(after["metadata"]), _BOOKKEEPING)
    except _UNREADABLE:
        return True


def content_changed(old: Entry, new: Entry) -> bool:
    """Tell whether two states differ in anything but metadata and status."""
    try:
        return _content_differs(old, new, _fields(old.json), _fields(new.json))
    except _UNREADABLE:
        return True


def differences_at(names: tuple[str, ...]) -> Callable[[Entry, Entry], bool]:
    """Make a function that tells whether two states differ in the field at a path."""
    read = msgspec.json.Decoder(_nested(names)).decode
    witnessed = names[0] != "status"

    def differ(old: Entry, new: Entry) -> bool:
        try:
            before, after = _leaf(read(old.json)), _leaf(read(new.json))
            if before == after == _NULL and names[0] not in _HEAD and _holds_only_metadata(_fields(new.json)):
                return not witnessed or _generation_tells(old, new)
            return before != after and _values_differ(before, after)
        except _UNREADABLE:
            return True

    return differ


def names_of(path: str) -> tuple[str, ...]:
    """Split a wire path into its names: `.spec.x`, `.metadata.annotations["example.com/mode"]`.

    Raises: ValueError when it is none.
    """
    names, end = [], 0
    for match in _NAME.finditer(path):
        if match.start() != end:
            break
        names.append(match[match.lastindex or 1])
        end = match.end()
    if not names or end != len(path):
        example = """'.spec.nodeName' or '.metadata.annotations["example.com/mode"]'"""
        raise ValueError(f"{path!r} is no wire path: write one such as {example}")
    return tuple(names)


def _content_differs(old: Entry, new: Entry, before: Fields, after: Fields) -> bool:
    if _holds_only_metadata(before) and _holds_only_metadata(after):
        return _generation_tells(old, new)
    return _differ(before, after, _APART)


def _holds_only_metadata(fields: Fields) -> bool:
    return fields.keys() <= _HEAD


def _generation_tells(old: Entry, new: Entry) -> bool:
    return not new.generation or old.generation != new.generation


def _differ(before: Fields, after: Fields, apart: frozenset[str]) -> bool:
    for name in before.keys() | after.keys():
        one, other = before.get(name, _NULL), after.get(name, _NULL)
        if one != other and name not in apart and _values_differ(one, other):
            return True
    return False


def _values_differ(one: msgspec.Raw, other: msgspec.Raw) -> bool:
    # Written again, since in Python 1 == True.
    return _canonical(_value(one)) != _canonical(_value(other))


def _leaf(value: Any) -> msgspec.Raw:
    while isinstance(value, msgspec.Struct):
        value = value.field  # type: ignore[attr-defined]
    return _NULL if value is None else value


def _nested(names: tuple[str, ...]) -> Any:
    """Make a type that reads one field, as raw JSON, and skips all others."""
    type_: Any = msgspec.Raw
    default: Any = _NULL
    for name in reversed(names):
        type_ = msgspec.defstruct("Field", [("field", type_, default)], rename={"field": name}) | None
        default = None
    return type_
