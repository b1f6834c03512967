"""Write the output files of a command: all of them, or none."""

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
    """Write texts to files, and create missing folders.

    Each text is first written to a draft next to its file. The drafts replace the files when all of them are written.
    If one cannot be written, nothing changes.

    Raises: click.ClickException that names the file.
    """
    created: list[Path] = []
    try:
        for path, text in files.items():
            with _report_errors(path):
                _create_folders(path.parent, created)
                _write_draft(path, text, created)
        for path in files:
            with _report_errors(path):
                os.replace(_draft_of(path), path)
    finally:
        _remove(created)


@contextmanager
def _report_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise click.ClickException(f"cannot write {path}: {reason or error}") from error


def _create_folders(folder: Path, created: list[Path]) -> None:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir()
        created.append(each)


def _write_draft(path: Path, text: str, created: list[Path]) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    draft = _draft_of(path)
    created.append(draft)  # before the write: a full disk leaves a partial draft
    draft.write_text(text, encoding="utf-8")


def _draft_of(path: Path) -> Path:
    return path.with_name(f".{path.name}{_DRAFT}")


def _remove(created: list[Path]) -> None:
    """Remove drafts and empty folders."""
    for path in reversed(created):
        with suppress(OSError):
            (path.rmdir if path.is_dir() else path.unlink)()
