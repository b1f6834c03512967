"""Targets: how a command is told which operator it is about.

A target is a path of a package or file (`operators/webapp`), or a module (`operators.webapp`), each with `:name` for an
operator that is not called `operator`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

from konverge.manager import Operator

__all__ = ["load_operator", "module_of"]


def load_operator(target: str) -> Operator:
    """Load the operator that a target names.

    Raises: click.UsageError that says what was looked for.
    """
    place, _, name = target.partition(":")
    module = _imported(module_of(place))
    found = getattr(module, name or "operator", None)
    if not name and (found is None or isinstance(found, ModuleType)):
        # `operators/webapp` may keep it in `operators/webapp/operator.py`, which is an attribute once it is imported.
        found = getattr(_submodule(module), "operator", None)
    if not isinstance(found, Operator):
        raise click.UsageError(
            f"{target}: there is no Operator called {name or 'operator'!r} in {module.__name__}"
            " (write `operator = Operator(name=..., controllers=...)`, or name another one: TARGET:name)"
        )
    return found


def module_of(place: str) -> str:
    """Give the name of the module at a place; the working directory becomes importable."""
    if not Path(place).exists():
        _make_importable(Path.cwd())
        return place
    path = Path(place).resolve()
    root = path if path.is_dir() else path.parent
    while (root / "__init__.py").exists() or (path.is_dir() and root == path):
        root = root.parent
    # A folder without __init__.py can be a package too; below the working directory the whole path counts.
    if path.is_relative_to(Path.cwd()):
        root = Path.cwd()
    _make_importable(root)
    return ".".join(path.relative_to(root).with_suffix("").parts)


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        raise click.UsageError(f"there is no file, package or module {name!r}") from None


def _submodule(module: ModuleType) -> ModuleType | None:
    try:
        return import_module(f"{module.__name__}.operator")
    except ModuleNotFoundError:
        return None


def _make_importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
