"""Small files with settings and secrets: read within a limit, and reloaded when they rotate.

A kubelet replaces the token and CA of a service account while the process runs, and tools such as cert-manager replace
certificates. Rules:

1. A read stops at a limit, however large the file is.
2. A change is detected by content, not by modification time: times are too coarse, and a replaced symbolic link may not
   change them.
3. The last valid value stays in use until a valid one replaces it: a file may be half written.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from konverge.client.access.locations import Location
from konverge.errors import ConfigError

__all__ = ["NamedFile", "RotatingValue", "read_bounded"]

T = TypeVar("T")

RELOAD_INTERVAL = 10.0
"""Seconds between two reads of a file that may rotate. Kubelets renew a token minutes before it expires."""

SECRET_LIMIT = 1 << 20
"""The limit of a token, key or certificate file in bytes: a bundle of all public authorities is a quarter of it."""

_log = logging.getLogger("konverge.client")


def read_bounded(path: Path, location: Location, *, limit: int = SECRET_LIMIT) -> bytes:
    """Return the content of a file.

    Raises:
        ConfigError: it cannot be read, or is larger than the limit. FileNotFoundError is its cause when there is none.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise location.error(f"cannot read {path}: {error.strerror or 'input/output error'}") from error
    except ValueError:
        raise location.error("the path of the file contains a NUL character") from None
    if len(content) > limit:
        raise location.error(f"{path} is larger than {limit >> 10} KiB")
    return content


class NamedFile(Struct, frozen=True):
    """A file named by a setting: its path, and the location of the setting for errors."""

    path: Path
    location: Location

    def read(self) -> bytes:
        """Return the content of the file; an empty file is an error."""
        content = read_bounded(self.path, self.location)
        if not content.strip():
            raise self.location.error(f"{self.path} is empty")
        return content


class RotatingValue(Generic[T]):
    """A value built from the content of files, and built again when one of them changes.

    Promises:

    - `get` returns the same object until the content changes, so `is` detects a rotation;
    - the files are read at most every `reload_interval` seconds, and never if all parts are bytes;
    - the first `get` raises the error of an invalid file; a later one returns the last valid value and logs once.

    Assumes: `make` takes one argument for each part, in order, and raises ConfigError for invalid content.
    """

    def __init__(
        self,
        parts: Sequence[bytes | NamedFile],
        make: Callable[..., T],
        *,
        clock: Callable[[], float] = time.monotonic,
        reload_interval: float = RELOAD_INTERVAL,
    ) -> None:
        self._parts = tuple(parts)
        self._make = make
        self._clock = clock
        self._reload_interval = reload_interval if any(isinstance(part, NamedFile) for part in parts) else float("inf")
        self._cached: tuple[tuple[bytes, ...], T] | None = None
        self._loaded_at = float("-inf")
        self._error = ""

    def __repr__(self) -> str:
        paths = ", ".join(str(part.path) for part in self._parts if isinstance(part, NamedFile))
        return f"RotatingValue({paths})"

    def get(self) -> T:
        """Return the value; read the files first if the last read is longer ago than the interval."""
        if self._cached is not None and self._clock() - self._loaded_at < self._reload_interval:
            return self._cached[1]
        return self.renew()

    def renew(self) -> T:
        """Read the files now and return the value."""
        cached = self._cached
        try:
            cached = self._load(cached)
            self._error = ""
        except ConfigError as error:
            if cached is None:
                raise
            self._log_error(str(error))
        self._cached, self._loaded_at = cached, self._clock()
        return cached[1]

    def _load(self, cached: tuple[tuple[bytes, ...], T] | None) -> tuple[tuple[bytes, ...], T]:
        contents = tuple(part if isinstance(part, bytes) else part.read() for part in self._parts)
        if cached is not None and cached[0] == contents:
            return cached
        return contents, self._make(*contents)

    def _log_error(self, error: str) -> None:
        if error != self._error:
            _log.warning("rotated file is invalid, using the last valid content", extra={"error": error})
        self._error = error
