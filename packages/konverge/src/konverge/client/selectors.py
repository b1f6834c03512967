"""Selectors as callers give them: a text, a dict of what must be equal, or a selector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from konverge.objects import FieldSelector, LabelSelector

__all__ = ["Fields", "Labels", "field_text", "label_text"]

Labels: TypeAlias = str | Mapping[str, str] | LabelSelector
Fields: TypeAlias = str | Mapping[str, str] | FieldSelector


def label_text(labels: Labels) -> str:
    """Give a label selector as it stands in a query. A text goes as it is: the server reads it."""
    return str(LabelSelector.of(labels)) if isinstance(labels, Mapping) else str(labels)


def field_text(fields: Fields) -> str:
    """Give a field selector as it stands in a query."""
    return str(FieldSelector.of(fields)) if isinstance(fields, Mapping) else str(fields)
