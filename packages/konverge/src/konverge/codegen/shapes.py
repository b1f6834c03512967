"""What generated code consists of, before it is text: modules, classes, fields, types.

Two readers make shapes (`openapi` from a server's API description, `crds` from CRD files) and one writer, `source`,
turns them into Python. A shape holds only what the text needs; decisions are taken by the readers.
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
    """A type as it stands in an annotation, and the imports that it needs."""

    text: str
    imports: frozenset[Import] = frozenset()

    def optional(self) -> TypeShape:
        """The same or None; `Any` allows None as it is."""
        if self.text == "Any" or self.text.endswith("| None"):
            return self
        return TypeShape(f"{self.text} | None", self.imports)

    def in_list(self) -> TypeShape:
        return TypeShape(f"list[{self.text}]", self.imports)

    def in_map(self) -> TypeShape:
        return TypeShape(f"dict[str, {self.text}]", self.imports)


@dataclass(frozen=True)
class Default:
    """What a field is when nothing is given: None, or what the factory makes."""

    factory: str | None = None


@dataclass(frozen=True)
class FieldShape:
    """One field; without a default it must be given."""

    attribute: str
    wire: str
    type: TypeShape
    default: Default | None = None
    doc: str = ""


@dataclass(frozen=True)
class ClassShape:
    """One class: an object with a kind, or a model inside of one."""

    name: str
    doc: str
    fields: tuple[FieldShape, ...]
    kind: Kind | None = None


@dataclass(frozen=True)
class LiteralShape:
    """A name for a long choice of values."""

    name: str
    values: tuple[str | int, ...]


@dataclass
class ModuleShape:
    """One module: its docstring, and what it defines, in order."""

    doc: str
    classes: list[ClassShape] = field(default_factory=list)
    literals: list[LiteralShape] = field(default_factory=list)

    def names(self) -> list[str]:
        return sorted([shape.name for shape in self.classes] + [shape.name for shape in self.literals])

    def type_imports(self) -> Iterable[Import]:
        """What the annotations need."""
        for shape in self.classes:
            for each in shape.fields:
                yield from each.type.imports
