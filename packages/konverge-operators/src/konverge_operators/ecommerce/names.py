"""Names that the parts of an EcommerceApp share."""

from __future__ import annotations

from konverge_operators.ecommerce.api import EcommerceApp

__all__ = ["DATABASE_CLIENT", "IMAGE_UPDATED", "LAST_RESTART", "OPERATOR", "component_name"]

OPERATOR = "ecommerce-operator"
DATABASE_CLIENT = "ecommerce.io/database-client"
"""The label of pods that may reach the database."""
IMAGE_UPDATED = "ecommerce.io/image-updated"
"""The annotation that requests a rolling restart."""
LAST_RESTART = "ecommerce.io/restarted-at"
"""The annotation of the pod templates with the time of the last rolling restart."""


def component_name(app: EcommerceApp, component: str) -> str:
    """Return the name of the objects of a component."""
    return f"{app.name}-{component}"
