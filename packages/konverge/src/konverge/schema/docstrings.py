"""Descriptions from the source: the docstring of a class, and the string below a field.

Python keeps the docstring of a class but not the strings below fields, so those are read from the source file, once per
module, and only when a CRD is built. Without a source file (a shell, a frozen program) there are no descriptions.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import get_origin

__all__ = ["class_doc", "field_docs"]


def class_doc(cls: type) -> str:
    """Return the docstring of the class itself, not an inherited one."""
    return inspect.cleandoc(vars(cls).get("__doc__") or "")


def field_docs(struct: type) -> Mapping[str, str]:
    """Return the strings below the fields of a class and of its base classes, by attribute."""
    cls = get_origin(struct) or struct
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= _module_docs(base.__module__).get(base.__qualname__, {})
    return found


@lru_cache(maxsize=256)
def _module_docs(module: str) -> Mapping[str, Mapping[str, str]]:
    file = getattr(sys.modules.get(module), "__file__", None)
    if not file or not file.endswith(".py"):
        return {}
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    return {name: _docs_in(node) for name, node in _classes(tree, "")}


def _classes(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield every class with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield f"{prefix}{child.name}", child
            yield from _classes(child, f"{prefix}{child.name}.")
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _classes(child, f"{prefix}{child.name}.<locals>.")
        else:
            yield from _classes(child, prefix)


def _docs_in(node: ast.ClassDef) -> dict[str, str]:
    docs: dict[str, str] = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            docs[field.target.id] = inspect.cleandoc(below.value.value)
    return docs
