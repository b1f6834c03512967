"""Files that a command writes: all of them, or none."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import click

__all__ = ["write_files"]

_DRAFT = ".konverge-draft"


def write_files(files: Mapping[Path, str]) -> None:
    """Write texts to files, and make the folders that they are in.

    Each is first written beside its place, and put there when all are written; where one cannot be, all is as before.

    Raises: click.ClickException that names the file.
    """
    made: list[Path] = []
    try:
        for path, text in files.items():
            with _told(path):
                _make_folders(path.parent, made)
                _write_draft(path, text, made)
        for path in files:
            with _told(path):
                os.replace(_draft_of(path), path)
    finally:
        _remove(made)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise click.ClickException(f"{path} cannot be written: {reason or error}") from error


def _make_folders(folder: Path, made: list[Path]) -> None:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir()
        made.append(each)


def _write_draft(path: Path, text: str, made: list[Path]) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "there is a folder of that name")
    draft = _draft_of(path)
    made.append(draft)  # before it is written: a disk that is full leaves half of it
    draft.write_text(text, encoding="utf-8")


def _draft_of(path: Path) -> Path:
    return path.with_name(f".{path.name}{_DRAFT}")


def _remove(made: list[Path]) -> None:
    """Remove drafts, and the folders that nothing was put into."""
    for path in reversed(made):
        with suppress(OSError):
            (path.rmdir if path.is_dir() else path.unlink)()
