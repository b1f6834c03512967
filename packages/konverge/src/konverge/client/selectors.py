"""Selectors as arguments: a string, a dict of names and values, or a selector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from konverge.objects import FieldSelector, LabelSelector

__all__ = ["Fields", "Labels", "field_text", "label_text"]

Labels: TypeAlias = str | Mapping[str, str] | LabelSelector
Fields: TypeAlias = str | Mapping[str, str] | FieldSelector


def label_text(labels: Labels) -> str:
    """Return a label selector as text for the query. A string is not checked: the server parses it."""
    return str(LabelSelector.of(labels)) if isinstance(labels, Mapping) else str(labels)


def field_text(fields: Fields) -> str:
    """Return a field selector as text for the query."""
    return str(FieldSelector.of(fields)) if isinstance(fields, Mapping) else str(fields)
