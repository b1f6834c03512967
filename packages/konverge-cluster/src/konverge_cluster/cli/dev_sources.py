"""The source files of an operator, and which of them have changed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import click

from konverge.cli.targets import short_repr, source_of, split_target

__all__ = ["changed_files", "folder_of", "snapshot"]

_SUFFIXES = frozenset({".py", ".yaml", ".yml", ".json"})


def folder_of(target: str) -> Path:
    """Return the folder that contains the source of a target.

    Raises: click.UsageError if the target has no source.
    """
    place, _ = split_target(target)
    source = source_of(place)
    if source is not None:
        return source.parent
    found = find_spec(place)
    if found is None or not found.has_location or found.origin is None:
        raise click.UsageError(f"{short_repr(place)} has no source files to watch")
    return Path(found.origin).parent


def snapshot(folder: Path) -> dict[Path, int]:
    """Return the modification time of each source file below a folder."""
    times: dict[Path, int] = {}
    for path in folder.rglob("*"):
        if path.suffix in _SUFFIXES and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            try:
                times[path] = path.stat().st_mtime_ns
            except FileNotFoundError:  # editors replace files
                continue
    return times


def changed_files(before: Mapping[Path, int], after: Mapping[Path, int]) -> list[Path]:
    """Return the files that were added, removed or modified, sorted."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
