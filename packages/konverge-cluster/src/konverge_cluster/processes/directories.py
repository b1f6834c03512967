"""The directory of one runtime: locked while it runs, removed after it, and by the next one if it was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

__all__ = ["open_directory"]

_LOCK: Final = "lock"


@contextmanager
def open_directory(parent: Path | None, *, keep: bool) -> Iterator[Path]:
    """Create a directory for a runtime, after removing those of runtimes that were killed.

    `parent` is where; by default a directory of this user below the one for temporary files, which the last runtime
    removes. With `keep` the files stay.

    Raises: OSError when the parent is not a directory of this user.
    """
    place = parent or Path(tempfile.gettempdir()) / f"konverge-processes-{os.getuid()}"
    with _locked(place):
        _remove_abandoned(place)
        directory = Path(tempfile.mkdtemp(prefix="run-", dir=place))
        lock = os.open(directory / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    directory.chmod(_mode())
    try:
        yield directory
    finally:
        if keep:
            (directory / _LOCK).unlink()
        else:
            shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)
        if parent is None:
            with suppress(OSError), _locked(place):
                place.rmdir()  # fails while there is another runtime, or what one has kept


def _checked(place: Path) -> Path:
    with suppress(FileExistsError):
        place.mkdir(mode=_mode(), parents=True)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{place} is not a directory of this user: remove it, or choose another directory")
    place.chmod(_mode())
    return place


def _mode() -> int:
    """Return who may enter: this user; with root also those who know a name, since containers have other users."""
    return 0o711 if os.getuid() == 0 else 0o700


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Create a directory and lock it."""
    descriptor = None
    while descriptor is None:
        with suppress(FileNotFoundError):  # removed meanwhile
            descriptor = _lock_directory(_checked(place))
    try:
        yield
    finally:
        os.close(descriptor)


def _lock_directory(place: Path) -> int | None:
    """Lock a directory; return its descriptor, None if the directory was removed meanwhile."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    if os.fstat(descriptor).st_nlink:
        return descriptor
    os.close(descriptor)
    return None


def _remove_abandoned(place: Path) -> None:
    for directory in place.glob("run-*"):
        with suppress(FileNotFoundError):  # one that was kept has no lock
            lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory, ignore_errors=True)
            except BlockingIOError:
                continue
            finally:
                os.close(lock)
