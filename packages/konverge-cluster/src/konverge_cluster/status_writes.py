"""How the built-in controllers write: under one field manager, and of a status only what is different."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from konverge.client import Client
from konverge.objects import Resource, merge_patch, to_wire
from konverge.reconcile import Context

__all__ = ["MANAGER", "controller_client", "write_status"]

MANAGER: Final = "kube-controller-manager"

T = TypeVar("T", bound=Resource)


def controller_client(ctx: Context) -> Client:
    """Give the client of a reconcile, under the field manager of the built-in controllers."""
    return ctx.client.using(field_manager=MANAGER)


async def write_status(ctx: Context, obj: T, status: Any, *, annotations: Mapping[str, str] | None = None) -> T:
    """Write a status, and annotations by way of it, under the version that was read; give the object as it is then.

    Nothing is sent when nothing is different. The object itself must be as it was read.

    Raises: Conflict when somebody else wrote meanwhile.
    """
    was: Any = obj
    patch: dict[str, Any] = {}
    if status != was.status:
        patch["status"] = merge_patch(to_wire(was.status), to_wire(status))
    if annotations is not None and annotations != obj.metadata.annotations:
        patch["metadata"] = {"annotations": merge_patch(obj.metadata.annotations, annotations)}
    if not patch:
        return obj
    patch.setdefault("metadata", {})["resourceVersion"] = obj.resource_version
    return await controller_client(ctx).patch(type(obj), obj.key, patch, subresource="status")
