"""What is found wrong with a value while a schema is held against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge_cluster.api.field_errors import FieldError, invalid
from konverge_cluster.crds.correlation import Correlation
from konverge_cluster.crds.paths import Place

__all__ = ["Report", "Step"]

Step = Callable[[Any, Place, "Report", Correlation | None], None]
"""Looks at one aspect of a value, and adds to the report what is wrong with it."""


class Report:
    """What was found so far; `base` is the field that the root of the schema stands for ("" for the whole object)."""

    __slots__ = ("base", "found")

    def __init__(self, base: str = "") -> None:
        self.base = base
        self.found: list[FieldError] = []

    def path(self, name: str) -> str:
        """The path in an answer of a field that is called `name` in the texts."""
        name = name.removeprefix(".")
        if not self.base:
            return name or "<nil>"
        return f"{self.base}.{name}" if name else self.base

    def say(self, text: str) -> None:
        """Note a problem that names its field only in its text."""
        self.found.append(invalid(self.base or "<nil>", "", text))

    def child(self) -> Report:
        return Report(self.base)
