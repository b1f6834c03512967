"""Run the Python blocks of a documentation page, and record which of their functions were called."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Examples"]

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RECORD = "__record_call__"


@dataclass
class Examples:
    """The blocks of one page, which share one namespace, as a reader runs them one after the other."""

    page: Path
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "examples"})
    _defined: set[str] = field(default_factory=set)
    _called: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Run the blocks in order."""
        self.namespace[_RECORD] = self._called.add
        for number, block in enumerate(_BLOCK.findall(self.page.read_text())):
            recorder = _CallRecorder()
            tree = ast.fix_missing_locations(recorder.visit(ast.parse(block)))
            self._defined |= recorder.names
            exec(compile(tree, f"{self.page.name}, block {number}", "exec", dont_inherit=True), self.namespace)

    def not_called(self) -> list[str]:
        """Return the names of functions and methods that the page defines and nobody called."""
        return sorted(self._defined - self._called)


class _CallRecorder(ast.NodeTransformer):
    """Make every function record its name when it is called."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._outer: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self._outer.append(node.name)
        self.generic_visit(node)
        self._outer.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self._record(node)
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        self._record(node)
        return node

    def _record(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._outer.append(node.name)
        name = ".".join(self._outer)
        self.names.add(name)
        self.generic_visit(node)
        self._outer.pop()
        call = ast.Expr(ast.Call(ast.Name(_RECORD, ast.Load()), [ast.Constant(name)], []))
        node.body.insert(1 if ast.get_docstring(node) is not None else 0, call)
