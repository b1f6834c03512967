"""Targets: how a command is told which operator it is about.

A target is the path of a package, folder or file (`shop/operator.py`), or a module (`konverge_operators.webapp`), each
with `:name` for an operator that is not called `operator`. Whatever is wrong with one is reported in one line.
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

from konverge.cli.sources import imported, load_file, module_path

if TYPE_CHECKING:
    from konverge.manager import Operator

__all__ = ["load_operator", "shown", "source_of", "split_target"]

_LONGEST = 80


def load_operator(target: str) -> Operator:
    """Load the operator that a target names.

    Raises: click.UsageError that says what was looked for, click.ClickException when its source fails.
    """
    # Loaded here: the commands that need no operator start without it.
    from konverge.manager import Operator

    place, name = split_target(target)
    source = source_of(place)
    with imported(source or Path.cwd()):
        module = import_module(place) if source is None else load_file(source)
        found, where = _found(module, name)
    if isinstance(found, Operator):
        return found
    told = "there is no Operator called" if found is None else f"{_kind_of(found)}, and no Operator, is called"
    raise click.UsageError(
        f"{shown(target)}: {told} {name or 'operator'!r} in {where}"
        " (write `operator = Operator(name=..., controllers=...)`, or name another one: TARGET:name)"
    )


def split_target(target: str) -> tuple[str, str]:
    """Give the place that a target names, and the name of the operator there, "" unless it is said."""
    place, _, name = (target, "", "") if os.path.exists(target) else target.rpartition(":")
    return (place, name) if place else (name, "")


def source_of(place: str) -> Path | None:
    """Give the file that a place stands for; None for a module that is installed.

    Raises: click.UsageError when there is nothing, or nothing of use.
    """
    if not place.strip():
        raise click.UsageError("TARGET is empty: write a package, file or module with an `operator` in it")
    # A module below the working directory is taken for its file: no module of the same name elsewhere comes before it.
    below = place.replace(".", "/")
    for path in (place, below, f"{below}.py"):
        if os.path.exists(path):
            return _file_at(Path(path).resolve(), path)
    if not all(part.isidentifier() for part in place.split(".")) or not _is_installed(place):
        raise click.UsageError(f"there is no file, package or module {shown(place)}")
    return None


def shown(text: str) -> str:
    """Quote what somebody wrote for a message, in one line and not too long."""
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


def _file_at(path: Path, place: str) -> Path:
    if path.is_dir():
        for name in ("__init__.py", "operator.py"):
            if (path / name).is_file():
                return path / name
        raise click.UsageError(
            f"the folder {shown(place)} has no __init__.py and no operator.py in it (name the file with the operator)"
        )
    if not path.is_file() or path.suffix != ".py":
        raise click.UsageError(f"{shown(place)} is no Python file (its name would end in .py)")
    return path


def _is_installed(name: str) -> bool:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    with imported(Path.cwd()):  # to look for a submodule imports what is above it
        try:
            return name in sys.modules or find_spec(name) is not None
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            return False


def _found(module: ModuleType, name: str) -> tuple[Any, str]:
    """Give what is called so in a module, or in its submodule `operator`, and where that is."""
    found = getattr(module, name or "operator", None)
    if (found is None or isinstance(found, ModuleType)) and not name and hasattr(module, "__path__"):
        inner = f"{module.__name__}.operator"
        if find_spec(inner) is not None:
            module = import_module(inner)
            found = getattr(module, "operator", None)
    return found, module_path(module)


def _kind_of(value: object) -> str:
    return "a module" if isinstance(value, ModuleType) else f"a value of type {type(value).__name__}"
