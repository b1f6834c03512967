"""Paths of local images that other users cannot reach, such as a wheel below a home directory of mode 0700.

With mount namespaces they are mounted into the container. Without, they are copied once for each runtime: as hard links
where the file system allows that.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

__all__ = ["ReadableCopies", "is_public"]


def is_public(path: str) -> bool:
    """Report whether every user can enter the directories above a path."""
    with suppress(OSError):
        return all(os.stat(parent).st_mode & 0o001 for parent in Path(path).parents)
    return False


class ReadableCopies:
    """Readable copies of paths, below one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._copies: dict[str, str] = {}

    def copy(self, path: str) -> str:
        """Return a path that every user can reach: the path itself, or that of its copy.

        Raises: OSError when it cannot be copied.
        """
        if is_public(path):
            return path
        if path not in self._copies:
            target = self._directory / str(len(self._copies)) / (os.path.basename(path) or "root")
            target.parent.mkdir(parents=True)
            target.parent.chmod(0o755)
            self._directory.chmod(0o755)
            if os.path.isdir(path):
                shutil.copytree(path, target, symlinks=True, copy_function=_link)
            else:
                _link(path, str(target))
            self._copies[path] = str(target)
        return self._copies[path]


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
