"""The source of an operator as it is on disk, to notice that somebody changed it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import click

from konverge.cli.targets import shown, source_of, split_target

__all__ = ["changed", "folder_of", "snapshot"]

_SUFFIXES = frozenset({".py", ".yaml", ".yml", ".json"})


def folder_of(target: str) -> Path:
    """Give the folder that the source of a target is in.

    Raises: click.UsageError when there is none.
    """
    place, _ = split_target(target)
    source = source_of(place)
    if source is not None:
        return source.parent
    found = find_spec(place)
    if found is None or not found.has_location or found.origin is None:
        raise click.UsageError(f"{shown(place)} has no source that could be watched")
    return Path(found.origin).parent


def snapshot(folder: Path) -> dict[Path, int]:
    """Give when each file of source below a folder was changed last."""
    found: dict[Path, int] = {}
    for path in folder.rglob("*"):
        if path.suffix in _SUFFIXES and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            try:
                found[path] = path.stat().st_mtime_ns
            except FileNotFoundError:  # an editor replaces files by others
                continue
    return found


def changed(before: Mapping[Path, int], after: Mapping[Path, int]) -> list[Path]:
    """Give the files that came, went or are other ones, in order."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
