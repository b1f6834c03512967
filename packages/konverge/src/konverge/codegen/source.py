"""Render shapes as Python source, formatted as ruff formats it.

The caller decides the order of classes. It matters in one case only: a class that is the default factory of a field
must come before that field.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from konverge.codegen.shapes import ClassShape, FieldShape, Import, LiteralShape, ModuleShape
from konverge.codegen.texts import LINE_LENGTH, docstring, string_literal
from konverge.objects.kinds import Kind, Scope
from konverge.objects.wire_names import wire_name

__all__ = ["source_of"]

_INDENT = "    "
_NO_LENGTH_CHECK = "# ruff: noqa: E501\n"
_STANDARD_LIBRARY = frozenset({"datetime", "typing"})


def source_of(module: ModuleShape) -> str:
    """Return the source of a module."""
    blocks = [_class(shape) for shape in module.classes]
    head = [*docstring(module.doc.split("\n\n"), indent=""), "", "from __future__ import annotations", ""]
    head += _imports([*module.type_imports(), *_needed(module)])
    head += [*_all(module.names())]
    for literal in module.literals:
        head += ["", *_literal(literal)]
    text = "\n\n\n".join("\n".join(lines) for lines in (head, *blocks)) + "\n"
    # Names of nested models can be longer than a line, and they cannot be wrapped.
    return _NO_LENGTH_CHECK + text if any(len(line) > LINE_LENGTH for line in text.splitlines()) else text


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
    """Return the sort key of isort: constants, then classes, then the rest."""
    if name.isupper() and len(name) > 1:
        return (0, name)
    return (1 if name[:1].isupper() else 2, name)


def _all(names: list[str]) -> list[str]:
    items = ", ".join(string_literal(name) for name in sorted(names, key=_import_order))
    line = f"__all__ = [{items}]"
    if len(line) <= LINE_LENGTH:
        return [line]
    return ["__all__ = [", *(f"{_INDENT}{string_literal(name)}," for name in sorted(names, key=_import_order)), "]"]


def _literal(literal: LiteralShape) -> list[str]:
    values = [string_literal(value) if isinstance(value, str) else str(value) for value in literal.values]
    return [f"{literal.name}: TypeAlias = Literal[", *(f"{_INDENT}{value}," for value in values), "]"]


def _class(shape: ClassShape) -> list[str]:
    body = docstring(shape.doc.split("\n\n"), indent=_INDENT)
    spaced = bool(body)
    for each in shape.fields:
        doc = docstring(each.doc.split("\n\n"), indent=_INDENT)
        if body and (spaced or doc):
            body.append("")
        body += [*_field(each), *doc]
        spaced = bool(doc)
    return [*_class_line(shape), *(body or [f"{_INDENT}pass"])]


def _class_line(shape: ClassShape) -> list[str]:
    if shape.kind is None:
        return _call(f"class {shape.name}", ["Model"], indent="", end=":")
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
    parts = [string_literal(text) for text in (kind.group, kind.version, kind.kind, kind.plural)]
    return [*parts, "Scope.CLUSTER"] if kind.scope is Scope.CLUSTER else parts


def _call(head: str, arguments: list[str], *, indent: str, end: str = "") -> list[str]:
    """Format a call: on one line, with its arguments on one line, or with one argument per line."""
    tight = ", ".join(arguments)
    if len(f"{indent}{head}({tight}){end}") <= LINE_LENGTH:
        return [f"{indent}{head}({tight}){end}"]
    inner = f"{indent}{_INDENT}"
    if len(inner + tight) <= LINE_LENGTH:
        return [f"{indent}{head}(", inner + tight, f"{indent}){end}"]
    return [f"{indent}{head}(", *(f"{inner}{each}," for each in arguments), f"{indent}){end}"]


def _field(shape: FieldShape) -> list[str]:
    head = f"{shape.attribute}: {shape.type.text}"
    arguments = list(_arguments(shape))
    value = ""
    if shape.default is not None or arguments:
        value = f" = field({', '.join(arguments)})" if _needs_call(shape) else " = None"
    if len(_INDENT + head + value) <= LINE_LENGTH:
        return [_INDENT + head + value]
    if _needs_call(shape) and len(f"{_INDENT}{head} = field(") <= LINE_LENGTH:
        return _call(f"{head} = field", arguments, indent=_INDENT)
    if value and len(f"{_INDENT}{head} = (") <= LINE_LENGTH:
        return [f"{_INDENT}{head} = (", f"{_INDENT * 2}{value.removeprefix(' = ')}", f"{_INDENT})"]
    return _broken_annotation(shape.attribute, shape.type.text, value)


def _broken_annotation(attribute: str, type_: str, value: str) -> list[str]:
    """Format a field whose annotation is too long for a line."""
    inner = _INDENT * 2
    opening, closing, parts = _annotation_parts(type_)
    if len(inner + " ".join(parts)) <= LINE_LENGTH:
        parts = [" ".join(parts)]
    elif len(parts) == 1 and opening == "(":
        return [f"{_INDENT}{attribute}: {type_}{value}"]
    return [f"{_INDENT}{attribute}: {opening}", *(inner + part for part in parts), f"{_INDENT}{closing}{value}"]


def _annotation_parts(type_: str) -> tuple[str, str, list[str]]:
    """Split an annotation where it may be wrapped: after a bracket, or around a bar."""
    if type_.endswith(" | None"):
        return "(", ")", [type_.removesuffix(" | None"), "| None"]
    for opening in ("list[", "dict["):
        if type_.startswith(opening):
            return opening, "]", [type_.removeprefix(opening)[:-1]]
    return "(", ")", [type_]


def _arguments(shape: FieldShape) -> Iterable[str]:
    if shape.default is not None:
        yield f"default_factory={shape.default.factory}" if shape.default.factory else "default=None"
    if wire_name(shape.attribute) != shape.wire:
        yield f"name={string_literal(shape.wire)}"


def _needs_call(shape: FieldShape) -> bool:
    factory = shape.default is not None and shape.default.factory is not None
    return factory or wire_name(shape.attribute) != shape.wire
