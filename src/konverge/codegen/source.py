"""Shapes to Python source, formatted as ruff would: one module as one text.

The order of classes is the caller's. It matters in one place only: a field whose default is made by a class must come
after that class.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from konverge.codegen.shapes import ClassShape, FieldShape, Import, LiteralShape, ModuleShape
from konverge.codegen.texts import LINE_LENGTH, docstring, quoted
from konverge.objects.kinds import Kind, Scope
from konverge.objects.wirenames import wire_name

__all__ = ["source_of"]

_INDENT = "    "
_STANDARD_LIBRARY = frozenset({"datetime", "typing"})


def source_of(module: ModuleShape) -> str:
    """Write a module."""
    blocks = [_class(shape) for shape in module.classes]
    head = [*docstring(module.doc.split("\n\n"), indent=""), "", "from __future__ import annotations", ""]
    head += _imports([*module.type_imports(), *_needed(module)])
    head += [*_all(module.names())]
    for literal in module.literals:
        head += ["", *_literal(literal)]
    text = "\n".join(head)
    return "\n\n\n".join([text, *("\n".join(lines) for lines in blocks)]) + "\n"


def _needed(module: ModuleShape) -> Iterable[Import]:
    kinds = [shape.kind for shape in module.classes if shape.kind]
    if kinds:
        yield ("konverge.objects.kinds", "Kind")
        yield ("konverge.objects.resources", "Resource")
    if any(kind.scope is Scope.CLUSTER for kind in kinds):
        yield ("konverge.objects.kinds", "Scope")
    if len(kinds) < len(module.classes):
        yield ("konverge.objects.models", "Model")
    if any(_needs_call(each) for shape in module.classes for each in shape.fields):
        yield ("konverge.objects.models", "field")
    if module.literals:
        yield ("typing", "Literal")
        yield ("typing", "TypeAlias")


def _imports(imports: Iterable[Import]) -> list[str]:
    modules: dict[str, set[str]] = defaultdict(set)
    for module, name in imports:
        modules[module].add(name)
    lines: list[str] = []
    for section in (sorted(modules.keys() & _STANDARD_LIBRARY), sorted(modules.keys() - _STANDARD_LIBRARY)):
        for module in section:
            lines += _import(module, sorted(modules[module], key=_import_order))
        lines += [""] if section else []
    return lines


def _import(module: str, names: list[str]) -> list[str]:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= LINE_LENGTH:
        return [line]
    return [f"from {module} import (", *(f"{_INDENT}{name}," for name in names), ")"]


def _import_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as isort has it."""
    if name.isupper() and len(name) > 1:
        return (0, name)
    return (1 if name[:1].isupper() else 2, name)


def _all(names: list[str]) -> list[str]:
    items = ", ".join(quoted(name) for name in sorted(names, key=_import_order))
    line = f"__all__ = [{items}]"
    if len(line) <= LINE_LENGTH:
        return [line]
    return ["__all__ = [", *(f"{_INDENT}{quoted(name)}," for name in sorted(names, key=_import_order)), "]"]


def _literal(literal: LiteralShape) -> list[str]:
    values = [quoted(value) if isinstance(value, str) else str(value) for value in literal.values]
    return [f"{literal.name}: TypeAlias = Literal[", *(f"{_INDENT}{value}," for value in values), "]"]


def _class(shape: ClassShape) -> list[str]:
    lines = [*_class_line(shape), *docstring(shape.doc.split("\n\n"), indent=_INDENT)]
    for each in shape.fields:
        if len(lines) > 1:
            lines.append("")
        lines += [*_field(each), *docstring(each.doc.split("\n\n"), indent=_INDENT)]
    return lines if len(lines) > 1 else [*lines, f"{_INDENT}pass"]


def _class_line(shape: ClassShape) -> list[str]:
    if shape.kind is None:
        return [f"class {shape.name}(Model):"]
    kind = _kind(shape.kind)
    head = f"class {shape.name}("
    tight = f"Resource, identity=Kind({', '.join(kind)})"
    if len(f"{head}{tight}):") <= LINE_LENGTH:
        return [f"{head}{tight}):"]
    if len(_INDENT + tight) <= LINE_LENGTH:
        return [head, _INDENT + tight, "):"]
    identity = _call("identity=Kind", kind, indent=_INDENT, end=",")
    return [head, f"{_INDENT}Resource,", *identity, "):"]


def _kind(kind: Kind) -> list[str]:
    parts = [quoted(text) for text in (kind.group, kind.version, kind.kind, kind.plural)]
    return [*parts, "Scope.CLUSTER"] if kind.scope is Scope.CLUSTER else parts


def _call(head: str, arguments: list[str], *, indent: str, end: str = "") -> list[str]:
    """Write a call on one line, else its arguments on one line, else on a line each."""
    tight = ", ".join(arguments)
    if len(f"{indent}{head}({tight}){end}") <= LINE_LENGTH:
        return [f"{indent}{head}({tight}){end}"]
    inner = f"{indent}{_INDENT}"
    if len(inner + tight) <= LINE_LENGTH:
        return [f"{indent}{head}(", inner + tight, f"{indent}){end}"]
    return [f"{indent}{head}(", *(f"{inner}{each}," for each in arguments), f"{indent}){end}"]


def _field(shape: FieldShape) -> list[str]:
    head = f"{shape.attribute}: {shape.type.text}"
    if _needs_call(shape):
        return _call(f"{head} = field", list(_arguments(shape)), indent=_INDENT)
    return [f"{_INDENT}{head}"] if shape.default is None else [f"{_INDENT}{head} = None"]


def _arguments(shape: FieldShape) -> Iterable[str]:
    if shape.default is not None:
        yield f"default_factory={shape.default.factory}" if shape.default.factory else "default=None"
    if wire_name(shape.attribute) != shape.wire:
        yield f"name={quoted(shape.wire)}"


def _needs_call(shape: FieldShape) -> bool:
    factory = shape.default is not None and shape.default.factory is not None
    return factory or wire_name(shape.attribute) != shape.wire
