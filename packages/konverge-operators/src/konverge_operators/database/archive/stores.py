"""Destinations: a directory, or a bucket of an S3-compatible store.

A store has objects by key. `put` is atomic: an object is there as a whole or not at all, also after a crash.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from socket import gethostname
from typing import Protocol
from urllib.parse import urlsplit

__all__ = ["ArchiveError", "Directory", "Store", "Stored", "open_store"]


class ArchiveError(Exception):
    """The destination cannot be used, or what it has is damaged. The message is for people, and has no secret."""


@dataclass(frozen=True)
class Stored:
    """An object of a store."""

    key: str
    modified: datetime


class Store(Protocol):
    """Objects by key. Each method raises ArchiveError when the destination cannot be reached."""

    def put(self, key: str, content: bytes) -> None:
        """Store an object, or replace it."""
        ...

    def get(self, key: str) -> bytes:
        """Return an object; one that is missing is an ArchiveError."""
        ...

    def list(self, prefix: str) -> list[Stored]:
        """Return the objects whose keys start with a prefix, by key."""
        ...

    def delete(self, key: str) -> None:
        """Delete an object; one that is missing is no error."""
        ...


def open_store(environment: Mapping[str, str] | None = None) -> Store:
    """Return the store of ARCHIVE_URL: file:///directory, or s3://bucket/prefix with ARCHIVE_ENDPOINT and keys."""
    from konverge_operators.database.archive.s3 import S3Bucket  # a directory needs no HTTP

    env = os.environ if environment is None else environment
    if "ARCHIVE_URL" not in env:
        raise ArchiveError("this container has no destination yet")
    url = urlsplit(env["ARCHIVE_URL"])
    if url.scheme == "file":
        return Directory(Path(url.path))
    return S3Bucket(
        endpoint=env["ARCHIVE_ENDPOINT"],
        bucket=url.netloc,
        prefix=url.path.strip("/"),
        region=env["ARCHIVE_REGION"],
        access_key=env["ARCHIVE_ACCESS_KEY_ID"],
        secret_key=env["ARCHIVE_SECRET_ACCESS_KEY"],
    )


class Directory:
    """A directory, such as a mounted claim. It must exist: a destination that is not mounted is no empty one."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, key: str, content: bytes) -> None:
        path = self._path(key)
        writer = f"{gethostname()}-{os.getpid()}"  # two pods may have one process id; the next try replaces a rest
        temporary = path.with_name(f".{path.name}.{writer}")
        try:
            self._check()
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            _sync(path.parent)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise ArchiveError(f"cannot write {key}: {error.strerror}") from error

    def get(self, key: str) -> bytes:
        try:
            return self._path(key).read_bytes()
        except OSError as error:
            raise ArchiveError(f"cannot read {key}: {error.strerror}") from error

    def list(self, prefix: str) -> list[Stored]:
        """Return the objects of a prefix. It reads one directory only if the prefix has one."""
        directory = self._path(prefix).parent if not prefix.endswith("/") else self._path(prefix)
        found: list[Stored] = []
        try:
            self._check()
            for path in directory.rglob("*") if directory.is_dir() else ():
                key = path.relative_to(self._root).as_posix()
                if key.startswith(prefix) and not path.name.startswith(".") and path.is_file():
                    found.append(Stored(key, datetime.fromtimestamp(path.stat().st_mtime, UTC)))
        except OSError as error:
            raise ArchiveError(f"cannot list {prefix}: {error.strerror}") from error
        return sorted(found, key=lambda one: one.key)

    def delete(self, key: str) -> None:
        path = self._path(key)
        try:
            path.unlink(missing_ok=True)
            for parent in path.relative_to(self._root).parents:
                if parent.parts and not any((self._root / parent).iterdir()):
                    (self._root / parent).rmdir()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise ArchiveError(f"cannot delete {key}: {error.strerror}") from error

    def _path(self, key: str) -> Path:
        return self._root / key

    def _check(self) -> None:
        if not self._root.is_dir():
            raise ArchiveError("the destination is not there")


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
