"""The major versions of PostgreSQL that the operator knows, and the images of their releases.

Releases of one major are drop-in replacements for each other. pg_upgrade leads from every older major to a newer one.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from konverge_operators.database.engine import Major

__all__ = ["MAJORS", "image", "upgrade_image"]

_TABLE: Final = (
    ("13", "13.23", date(2025, 11, 13)),
    ("14", "14.23", date(2026, 11, 12)),
    ("15", "15.18", date(2027, 11, 11)),
    ("16", "16.14", date(2028, 11, 9)),
    ("17", "17.10", date(2029, 11, 8)),
    ("18", "18.6", date(2030, 11, 14)),
)
"""Name, newest release, last day of support."""

MAJORS: Final = tuple(
    Major(name=name, newest=newest, supported_until=until, upgrades_from=tuple(row[0] for row in _TABLE[:number]))
    for number, (name, newest, until) in enumerate(_TABLE)
)


def image(version: str) -> str:
    """Return the image of a member, which `Dockerfile` builds."""
    return f"konverge-postgresql:{version}"


def upgrade_image(version: str) -> str:
    """Return the image of the Job that upgrades to a version: it has the programs of all older majors too."""
    return f"konverge-postgresql-upgrade:{version}"
