"""The versions of PostgreSQL that the operator knows, with their images.

A minor release is a drop-in replacement of the others of its major. A major upgrade needs its own path.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final

__all__ = ["MAJORS", "Major", "image", "major_of", "resolve"]


@dataclass(frozen=True)
class Major:
    """A major version: its minor releases in order, and the day after which it gets no more fixes."""

    number: int
    minors: tuple[int, ...]
    end_of_life: date


MAJORS: Final = {
    one.number: one
    for one in (
        Major(13, (4, 23), date(2025, 11, 13)),
        Major(14, (23,), date(2026, 11, 12)),
        Major(15, (18,), date(2027, 11, 11)),
        Major(16, (14,), date(2028, 11, 9)),
        Major(17, (10,), date(2029, 11, 8)),
        Major(18, (4, 6), date(2030, 11, 14)),
    )
}

_IMAGE: Final = "konverge-postgresql"


def resolve(version: str) -> str:
    """Return the release for a version: `18.4` is itself, `18` is the newest release of 18.

    Raises: ValueError for a version that is not in the table.
    """
    number, _, minor = version.partition(".")
    major = MAJORS.get(int(number)) if number.isdecimal() else None
    if major is None or (minor and minor not in map(str, major.minors)):
        raise ValueError(f"version {version!r} is not in the table of versions (there are: {', '.join(_releases())})")
    return f"{number}.{minor or major.minors[-1]}"


def major_of(version: str) -> Major:
    """Return the major of a version of the table."""
    return MAJORS[int(version.partition(".")[0])]


def image(version: str) -> str:
    """Return the image of a member for a version of the table."""
    return f"{_IMAGE}:{resolve(version)}"


def _releases() -> list[str]:
    return [f"{major.number}.{minor}" for major in MAJORS.values() for minor in major.minors]
