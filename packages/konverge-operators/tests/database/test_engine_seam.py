"""The seam between the reconciler and the engines: the reconciler knows the protocol, and no engine."""

from __future__ import annotations

import ast
from pathlib import Path

from konverge_operators import database

FOLDER = Path(database.__file__).parent
PACKAGE = "konverge_operators.database"
ENGINES = {file.parent.name for file in FOLDER.glob("*/engine.py")}
COMPOSITION = "operator.py"
"""The one module that names the engines: it passes them to the reconciler."""


def imported(file: Path) -> set[str]:
    """Return the parts of the operator that a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name.removeprefix(f"{PACKAGE}.").partition(".")[0] for name in names if name.startswith(f"{PACKAGE}.")}


def test_no_module_of_the_reconciler_imports_an_engine() -> None:
    assert "postgresql" in ENGINES
    modules = [file for pattern in ("*.py", "backups/*.py") for file in FOLDER.glob(pattern)]
    assert {file.name for file in modules if imported(file) & ENGINES} == {COMPOSITION}


def test_no_engine_imports_the_reconciler_or_another_engine() -> None:
    allowed = {"api", "engine", "names", "certificate_files", "archive"}  # the last has stores that know no engine
    for engine in ENGINES:
        for file in (FOLDER / engine).rglob("*.py"):
            assert imported(file) <= {*allowed, engine}, file
