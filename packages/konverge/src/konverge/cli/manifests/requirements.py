"""Requirements with hashes: a file that the user generates, so that an image installs these files and no others.

konverge writes no such file itself: hashes are those of an index that the user trusts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["Requirement", "Requirements", "normalized", "parse_requirements"]

_REQUIREMENT: Final = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*==\s*(?P<version>[^\s;]+)")
_OPTION: Final = re.compile("--(?!requirement|constraint|editable)")  # other files are not copied into the image
_HASH: Final = re.compile(r"--hash[=\s]\s*sha256:([0-9a-f]{64})\b")


@dataclass(frozen=True)
class Requirement:
    """One version of a distribution, and the SHA-256 hashes of its files."""

    name: str
    version: str
    hashes: tuple[str, ...]


@dataclass(frozen=True)
class Requirements:
    """A file of requirements: its path in the folder where the image is built, and what it pins."""

    path: str
    items: tuple[Requirement, ...]

    def __contains__(self, name: str) -> bool:
        return any(each.name == normalized(name) for each in self.items)


def normalized(name: str) -> str:
    """Return the one spelling of a distribution's name that package indexes compare."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_requirements(text: str, path: str) -> Requirements:
    """Parse a file of requirements.

    Raises: ValueError for a requirement without a version or without hashes, and for a file without requirements.
    """
    items = tuple(_requirement(line, path) for line in _lines(text) if not _OPTION.match(line))
    if not items:
        raise ValueError(f"{path} has no requirements")
    return Requirements(path, items)


def _lines(text: str) -> Iterator[str]:
    """Yield the logical lines: without comments, continued lines joined."""
    for line in re.sub(r"\\\r?\n", " ", re.sub(r"(^|\s)#.*", r"\1", text)).splitlines():
        if line.strip():
            yield line.strip()


def _requirement(line: str, path: str) -> Requirement:
    found, hashes = _REQUIREMENT.match(line), tuple(_HASH.findall(line))
    if found is None or not hashes:
        raise ValueError(
            f"{path}: {line[:80]!r} has no version with sha256 hashes (generate the file with"
            " `uv pip compile --generate-hashes` or `pip-compile --generate-hashes`)"
        )
    return Requirement(normalized(found["name"]), found["version"], hashes)
