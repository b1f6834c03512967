"""The intermediate form of generated code: modules, classes, fields, types.

Two modules build shapes: `openapi` from the API description of a server, `crds` from CRD files. `source` renders them
as Python. A shape has only what the text needs; all decisions are made when it is built.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from konverge.objects.kinds import Kind

__all__ = ["ClassShape", "Default", "FieldShape", "Import", "LiteralShape", "ModuleShape", "TypeShape"]

Import = tuple[str, str]
"""A module and a name in it."""


@dataclass(frozen=True)
class TypeShape:
    """The text of an annotation, and the imports that it needs."""

    text: str
    imports: frozenset[Import] = frozenset()

    def optional(self) -> TypeShape:
        """Return the same type or None; `Any` already includes None."""
        if self.text == "Any" or self.text.endswith("| None"):
            return self
        return TypeShape(f"{self.text} | None", self.imports)

    def in_list(self) -> TypeShape:
        return TypeShape(f"list[{self.text}]", self.imports)

    def in_map(self) -> TypeShape:
        return TypeShape(f"dict[str, {self.text}]", self.imports)


@dataclass(frozen=True)
class Default:
    """The default of a field: the result of a factory, or None without a factory."""

    factory: str | None = None


@dataclass(frozen=True)
class FieldShape:
    """A field; it is required if it has no default."""

    attribute: str
    wire: str
    type: TypeShape
    default: Default | None = None
    doc: str = ""


@dataclass(frozen=True)
class ClassShape:
    """A class: a resource if it has a kind, otherwise a model."""

    name: str
    doc: str
    fields: tuple[FieldShape, ...]
    kind: Kind | None = None


@dataclass(frozen=True)
class LiteralShape:
    """A named Literal with many values."""

    name: str
    values: tuple[str | int, ...]


@dataclass
class ModuleShape:
    """A module: its docstring and its definitions, in order."""

    doc: str
    classes: list[ClassShape] = field(default_factory=list)
    literals: list[LiteralShape] = field(default_factory=list)

    def names(self) -> list[str]:
        return sorted([shape.name for shape in self.classes] + [shape.name for shape in self.literals])

    def type_imports(self) -> Iterable[Import]:
        """Yield the imports that the annotations need."""
        for shape in self.classes:
            for each in shape.fields:
                yield from each.type.imports
