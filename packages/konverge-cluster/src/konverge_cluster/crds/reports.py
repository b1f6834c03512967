"""Collection of the errors of a value while it is validated against a schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge_cluster.api.field_errors import FieldError, invalid
from konverge_cluster.crds.correlation import Correlation
from konverge_cluster.crds.paths import FieldPath

__all__ = ["Report", "Step"]

Step = Callable[[Any, FieldPath, "Report", Correlation | None], None]
"""Checks one aspect of a value, and adds errors to the report."""


class Report:
    """The errors so far; `base` is the field of the root of the schema ("" for the whole object)."""

    __slots__ = ("base", "errors")

    def __init__(self, base: str = "") -> None:
        self.base = base
        self.errors: list[FieldError] = []

    def path(self, name: str) -> str:
        """Return the path in a response of a field that is called `name` in the messages."""
        name = name.removeprefix(".")
        if not self.base:
            return name or "<nil>"
        return f"{self.base}.{name}" if name else self.base

    def add_error(self, text: str) -> None:
        """Add an error that names its field only in its message."""
        self.errors.append(invalid(self.base or "<nil>", "", text))

    def child(self) -> Report:
        return Report(self.base)
