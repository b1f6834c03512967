"""The annotation that keeps an object of any operator, and everything that belongs to it, from being deleted."""

from __future__ import annotations

from konverge.objects import Resource

__all__ = ["PROTECTED", "protection_of"]

PROTECTED = "example.com/protected"
"""An object that has this annotation set to "true" is kept."""


def protection_of(obj: Resource) -> str:
    """Return why an object that is being deleted is kept; "" if it is not protected."""
    protected = (obj.metadata.annotations or {}).get(PROTECTED) == "true"
    return f"remove the annotation {PROTECTED} to let the deletion go on" if protected else ""
