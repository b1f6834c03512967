"""Small files that hold settings and secrets: read whole, within a limit, and read again when they rotate.

A kubelet replaces a service account's token and CA while the process runs, and so does whoever renews certificates.
Rules that hold here:

1. Nothing is trusted to be small: a read stops at a limit.
2. A file is read again by content, not by its date: dates are too coarse, and a swapped symbolic link keeps them.
3. What was good once stays in use until something good replaces it. A writer may be half-way through.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from konverge.client.access.places import Place
from konverge.errors import ConfigError

__all__ = ["NamedFile", "Rotating", "read_bounded"]

T = TypeVar("T")

RECHECK = 10.0
"""Seconds between two looks at a file that may rotate. Kubelets renew a token minutes before it expires."""

SECRET_LIMIT = 1 << 20
"""Bytes of a token, key or certificate file: a bundle of every public authority is a quarter of this."""

_log = logging.getLogger("konverge.client")


def read_bounded(path: Path, place: Place, *, limit: int = SECRET_LIMIT) -> bytes:
    """Read a whole file.

    Raises:
        ConfigError: it cannot be read, or is larger than the limit. FileNotFoundError is its cause when there is none.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise place.error(f"cannot read {path}: {error.strerror or 'input/output error'}") from error
    except ValueError:
        raise place.error("the path of the file has a NUL character") from None
    if len(content) > limit:
        raise place.error(f"{path} is larger than {limit >> 10} KiB")
    return content


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that a setting names: its path, and the place of the setting for errors."""

    path: Path
    place: Place

    def read(self) -> bytes:
        """Read the file; an empty one is an error, since nothing that is read here may be empty."""
        content = read_bounded(self.path, self.place)
        if not content.strip():
            raise self.place.error(f"{self.path} is empty")
        return content


class Rotating(Generic[T]):
    """A value made from the content of files, made again when one of them changes.

    Promises:

    - `get` returns the same object until a content changes, so `is` tells whether something rotated;
    - the files are looked at no more often than every `recheck` seconds, and never when all parts are bytes;
    - the first `get` raises what is wrong with the files; a later one returns the last good value and logs once.

    Assumes: `make` takes one argument for each part, in order, and raises ConfigError for content that is no good.
    """

    def __init__(
        self,
        parts: Sequence[bytes | NamedFile],
        make: Callable[..., T],
        *,
        clock: Callable[[], float] = time.monotonic,
        recheck: float = RECHECK,
    ) -> None:
        self._parts = tuple(parts)
        self._make = make
        self._clock = clock
        self._recheck = recheck if any(isinstance(part, NamedFile) for part in parts) else float("inf")
        self._held: tuple[tuple[bytes, ...], T] | None = None
        self._looked = float("-inf")
        self._complaint = ""

    def __repr__(self) -> str:
        paths = ", ".join(str(part.path) for part in self._parts if isinstance(part, NamedFile))
        return f"Rotating({paths})"

    def get(self) -> T:
        """Return the value, after a look at the files when the last one is long enough ago."""
        if self._held is not None and self._clock() - self._looked < self._recheck:
            return self._held[1]
        return self.renew()

    def renew(self) -> T:
        """Look at the files now."""
        held = self._held
        try:
            held = self._made(held)
            self._complaint = ""
        except ConfigError as error:
            if held is None:
                raise
            self._complain(str(error))
        self._held, self._looked = held, self._clock()
        return held[1]

    def _made(self, held: tuple[tuple[bytes, ...], T] | None) -> tuple[tuple[bytes, ...], T]:
        contents = tuple(part if isinstance(part, bytes) else part.read() for part in self._parts)
        if held is not None and held[0] == contents:
            return held
        return contents, self._make(*contents)

    def _complain(self, reason: str) -> None:
        if reason != self._complaint:
            _log.warning("a rotated file is not usable, the last good content stays in use", extra={"reason": reason})
        self._complaint = reason
