"""Scopes: which objects a store is about, decided for responses of own writes as the server decides for its watch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from konverge.objects import FieldSelector, Key, LabelSelector

__all__ = ["Scope"]

_ZERO = ("", "false", "0")
"""What the server takes an absent field for, by its type; the JSON leaves such values out."""


class Scope:
    """A namespace ("" for all), a label selector and a field selector."""

    def __init__(self, namespace: str, labels: str, fields: str) -> None:
        self._namespace = namespace
        self._labels = LabelSelector.parse(labels)
        self._fields = FieldSelector.parse(fields)

    def holds(self, key: Key) -> bool:
        """Tell whether the key is in the namespace."""
        return not self._namespace or key.namespace == self._namespace

    def selects(self, labels: Mapping[str, str], raw: bytes) -> bool | None:
        """Tell whether the selectors pick an object; None when that cannot be known here."""
        if not self._labels.matches(labels):
            return False
        if not self._fields.requirements:
            return True
        verdicts = [self._meets(one.field, one.value, one.equal, raw) for one in self._fields.requirements]
        return None if None in verdicts else all(verdicts)

    def _meets(self, field: str, value: str, equal: bool, raw: bytes) -> bool | None:
        found: Any = msgspec.json.decode(raw)
        for name in field.split("."):
            if not isinstance(found, dict):
                return None
            found = found.get(name)
            if found is None:
                return (value in _ZERO) is equal
        if isinstance(found, dict | list):
            return None  # the server means something of its own by this field
        text = str(found).lower() if isinstance(found, bool) else str(found)
        return (text == value) is equal
