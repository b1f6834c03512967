"""Scopes: whether an own write belongs to a store, decided as the server decides for the watch of that store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from konverge.objects import FieldSelector, Key, LabelSelector

__all__ = ["Scope"]

_ZERO = ("", "false", "0")
"""The zero values of field types: the JSON omits such fields, and the server compares them with the selector."""


class Scope:
    """A namespace ("" for all), a label selector and a field selector."""

    def __init__(self, namespace: str, labels: str, fields: str) -> None:
        self._namespace = namespace
        self._labels = LabelSelector.parse(labels)
        self._fields = FieldSelector.parse(fields)

    def contains(self, key: Key) -> bool:
        """Report whether the key is in the namespace."""
        return not self._namespace or key.namespace == self._namespace

    def matches(self, labels: Mapping[str, str], raw: bytes) -> bool | None:
        """Report whether the selectors match an object; None when only the server can know."""
        if not self._labels.matches(labels):
            return False
        if not self._fields.requirements:
            return True
        results = [self._matches_field(one.field, one.value, one.equal, raw) for one in self._fields.requirements]
        return None if None in results else all(results)

    def _matches_field(self, field: str, value: str, equal: bool, raw: bytes) -> bool | None:
        found: Any = msgspec.json.decode(raw)
        for name in field.split("."):
            if not isinstance(found, dict):
                return None
            found = found.get(name)
            if found is None:
                return (value in _ZERO) is equal
        if isinstance(found, dict | list):
            return None  # the server gives this field a meaning of its own
        text = str(found).lower() if isinstance(found, bool) else str(found)
        return (text == value) is equal
