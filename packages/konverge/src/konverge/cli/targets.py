"""Targets: arguments that name an operator.

A target is the path of a package, folder or file (`shop/operator.py`), or a module (`konverge_operators.webapp`). It
ends with `:name` if the operator is not named `operator`. Every error about a target is reported in one line.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from konverge.cli.sources import load_file, module_path, report_import_errors

if TYPE_CHECKING:
    from konverge.manager import Operator

__all__ = ["load_operator", "short_repr", "source_of", "split_target"]

_MAX_LENGTH = 80


def load_operator(target: str) -> Operator:
    """Load the operator that a target names.

    Raises: click.UsageError if there is no operator, click.ClickException if its source cannot be imported.
    """
    # Imported here because the commands that need no operator start faster without it.
    from konverge.manager import Operator

    place, name = split_target(target)
    source = source_of(place)
    with report_import_errors(source or Path.cwd()):
        module = import_module(place) if source is None else load_file(source)
        found, where = _find(module, name)
    if isinstance(found, Operator):
        return found
    attribute = repr(name or "operator")
    problem = f"there is no {attribute}" if found is None else f"{attribute} is {_describe(found)}, not an Operator,"
    raise click.UsageError(f"{short_repr(target)}: {problem} in {where} ({_hint(module, place)})")


def split_target(target: str) -> tuple[str, str]:
    """Split a target into a file or module and the name of the operator, which is "" if not given."""
    place, _, name = (target, "", "") if os.path.exists(target) else target.rpartition(":")
    return (place, name) if place else (name, "")


def source_of(place: str) -> Path | None:
    """Return the file of a target; None for an installed module.

    Raises: click.UsageError if there is no such file or module, or the file cannot define an operator.
    """
    if not place.strip():
        raise click.UsageError("TARGET is empty: use a package, file or module that defines `operator`")
    # A module below the working directory is loaded from its file, so that no other module of that name precedes it.
    # In a project with a src folder, modules are below that folder.
    below = place.replace(".", "/")
    for path in (place, below, f"{below}.py", f"src/{below}", f"src/{below}.py"):
        if os.path.exists(path):
            return _file_at(Path(path).resolve(), path)
    if not all(part.isidentifier() for part in place.split(".")) or not _is_installed(place):
        raise click.UsageError(f"there is no file, package or module {short_repr(place)}")
    return None


def short_repr(text: str) -> str:
    """Return a quoted and shortened form of an argument, for messages."""
    return repr(text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}...")


def _file_at(path: Path, place: str) -> Path:
    if path.is_dir():
        for name in ("__init__.py", "operator.py"):
            if (path / name).is_file():
                return path / name
        raise click.UsageError(
            f"the folder {short_repr(place)} contains neither __init__.py nor operator.py"
            " (use the file that defines the operator)"
        )
    if not path.is_file() or path.suffix != ".py":
        raise click.UsageError(f"{short_repr(place)} is not a Python file (use a .py file)")
    return path


def _is_installed(name: str) -> bool:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    with report_import_errors(Path.cwd()):  # finding a submodule imports its parents
        try:
            return name in sys.modules or find_spec(name) is not None
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            return False


def _find(module: ModuleType, name: str) -> tuple[Any, str]:
    """Return an attribute of a module, or of its submodule `operator`, and the path of that module."""
    found = getattr(module, name or "operator", None)
    if (found is None or isinstance(found, ModuleType)) and not name and hasattr(module, "__path__"):
        inner = f"{module.__name__}.operator"
        if find_spec(inner) is not None:
            module = import_module(inner)
            found = getattr(module, "operator", None)
    return found, module_path(module)


def _hint(module: ModuleType, place: str) -> str:
    """Return what to write: one of the operators in a package, or all of them together, or an operator."""
    folders = [Path(one) for one in getattr(module, "__path__", ())]
    names = sorted(one.parent.name for folder in folders for one in folder.glob("*/operator.py"))
    if not names:
        return "write `operator = Operator(name=..., controllers=...)`, or use TARGET:name for another name"
    use = place.rstrip("/") + ("/" if os.path.exists(place) else ".")
    several = f", or write `operator = Operator.combine(name, {', '.join(names)})` to run all" if names[1:] else ""
    return f"use {' or '.join(use + name for name in names)}{several}"


def _describe(value: object) -> str:
    return "a module" if isinstance(value, ModuleType) else f"a value of type {type(value).__name__}"
