"""The client that the built-in controllers write with: all their writes belong to one field manager."""

from __future__ import annotations

from typing import Final

from konverge.client import Client
from konverge.reconcile import Context

__all__ = ["MANAGER", "writer_of"]

MANAGER: Final = "kube-controller-manager"


def writer_of(ctx: Context) -> Client:
    """Give the client of a reconcile, under the field manager of the built-in controllers."""
    return ctx.client.using(field_manager=MANAGER)
