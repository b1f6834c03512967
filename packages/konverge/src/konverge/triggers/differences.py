"""Compare two states of an object by their JSON, without decoding all of it.

A document is split into raw fields. Equal bytes are equal values, so only fields whose bytes differ are decoded. Rules
that every change to this file keeps:

1. A null field is absent, and the order of fields does not matter.
2. If in doubt, the states differ: an unnecessary reconcile costs little, a missing one is a bug. Documents that do not
   decode and fields that the cache does not store are in doubt.
3. An equal generation does not prove that a field is equal: ConfigMaps and Secrets have none, and a server may count
   differently. It is used only if the cache has nothing but metadata, because then nothing else is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from konverge.cache import Entry

__all__ = ["changed_outside_status", "content_changed", "field_differs", "parse_path"]

Fields: TypeAlias = dict[str, msgspec.Raw]

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError)
_NULL = msgspec.Raw(b"null")

_HEAD = frozenset(("apiVersion", "kind", "metadata"))
_METADATA_AND_STATUS = frozenset(("metadata", "status"))
_BOOKKEEPING = frozenset(("resourceVersion", "managedFields"))

_NAME = re.compile(r"""\.([A-Za-z0-9_$-]+)|\["([^"\\]+)"\]|\['([^'\\]+)'\]""")

_fields: Callable[[bytes | msgspec.Raw], Fields] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value: Callable[[bytes | msgspec.Raw], Any] = msgspec.json.Decoder().decode
_canonical: Callable[[Any], bytes] = msgspec.json.Encoder(order="deterministic").encode


def changed_outside_status(old: Entry, new: Entry) -> bool:
    """Report whether two states differ in anything but status, resourceVersion and managedFields."""
    if old.generation != new.generation or old.terminating != new.terminating:
        return True
    try:
        before, after = _fields(old.json), _fields(new.json)
        if _content_differs(old, new, before, after):
            return True
        return _differ(_fields(before["metadata"]), _fields(after["metadata"]), _BOOKKEEPING)
    except _UNREADABLE:
        return True


def content_changed(old: Entry, new: Entry) -> bool:
    """Report whether two states differ in anything but metadata and status."""
    try:
        return _content_differs(old, new, _fields(old.json), _fields(new.json))
    except _UNREADABLE:
        return True


def field_differs(names: tuple[str, ...]) -> Callable[[Entry, Entry], bool]:
    """Return a function that reports whether two states differ in the field at a path."""
    read = msgspec.json.Decoder(_nested(names)).decode
    covered_by_generation = names[0] != "status"

    def differ(old: Entry, new: Entry) -> bool:
        try:
            before, after = _leaf(read(old.json)), _leaf(read(new.json))
            if before == after == _NULL and names[0] not in _HEAD and _has_only_metadata(_fields(new.json)):
                return not covered_by_generation or _generation_changed(old, new)
            return before != after and _values_differ(before, after)
        except _UNREADABLE:
            return True

    return differ


def parse_path(path: str) -> tuple[str, ...]:
    """Split a wire path into its names: `.spec.x`, `.metadata.annotations["example.com/mode"]`.

    Raises: ValueError when it is not a wire path.
    """
    names, end = [], 0
    for match in _NAME.finditer(path):
        if match.start() != end:
            break
        names.append(match[match.lastindex or 1])
        end = match.end()
    if not names or end != len(path):
        example = """'.spec.nodeName' or '.metadata.annotations["example.com/mode"]'"""
        raise ValueError(f"{path!r} is not a wire path: write one such as {example}")
    return tuple(names)


def _content_differs(old: Entry, new: Entry, before: Fields, after: Fields) -> bool:
    if _has_only_metadata(before) and _has_only_metadata(after):
        return _generation_changed(old, new)
    return _differ(before, after, _METADATA_AND_STATUS)


def _has_only_metadata(fields: Fields) -> bool:
    return fields.keys() <= _HEAD


def _generation_changed(old: Entry, new: Entry) -> bool:
    return not new.generation or old.generation != new.generation


def _differ(before: Fields, after: Fields, ignored: frozenset[str]) -> bool:
    for name in before.keys() | after.keys():
        one, other = before.get(name, _NULL), after.get(name, _NULL)
        if one != other and name not in ignored and _values_differ(one, other):
            return True
    return False


def _values_differ(one: msgspec.Raw, other: msgspec.Raw) -> bool:
    # Compare the encoded values, because 1 == True in Python.
    return _canonical(_value(one)) != _canonical(_value(other))


def _leaf(value: Any) -> msgspec.Raw:
    while isinstance(value, msgspec.Struct):
        value = value.field  # type: ignore[attr-defined]
    return _NULL if value is None else value


def _nested(names: tuple[str, ...]) -> Any:
    """Return a type that decodes one field, as raw JSON, and skips all others."""
    type_: Any = msgspec.Raw
    default: Any = _NULL
    for name in reversed(names):
        type_ = msgspec.defstruct("Field", [("field", type_, default)], rename={"field": name}) | None
        default = None
    return type_
