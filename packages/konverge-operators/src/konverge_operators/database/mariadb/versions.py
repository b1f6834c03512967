"""The major versions of MariaDB that the operator knows, and the images of their releases."""

from __future__ import annotations

from datetime import date
from typing import Final

from konverge_operators.database.engine import Major

__all__ = ["MAJORS", "image"]

MAJORS: Final = (Major(name="10.11", newest="10.11.19", supported_until=date(2028, 2, 16)),)


def image(version: str) -> str:
    """Return the image of a member, which `Dockerfile` builds."""
    return f"konverge-mariadb:{version}"
