"""Writes of the built-in controllers: with one field manager, and of a status only the differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from konverge.client import Client
from konverge.k8s.core.v1 import Pod
from konverge.objects import Resource, merge_patch, to_wire
from konverge.reconcile import Context

__all__ = ["MANAGER", "controller_client", "patch_pod_status", "write_status"]

MANAGER: Final = "kube-controller-manager"

T = TypeVar("T", bound=Resource)


def controller_client(ctx: Context) -> Client:
    """Return the client of a reconcile, with the field manager of the built-in controllers."""
    return ctx.client.using(field_manager=MANAGER)


async def write_status(ctx: Context, obj: T, status: Any, *, annotations: Mapping[str, str] | None = None) -> T:
    """Patch a status, and annotations with it, at the version that was read; return the updated object.

    Nothing is sent when nothing differs. The object itself must be unchanged since it was read.

    Raises: Conflict when the object was changed in the meantime.
    """
    current: Any = obj
    patch: dict[str, Any] = {}
    if status != current.status:
        patch["status"] = merge_patch(to_wire(current.status), to_wire(status))
    if annotations is not None and annotations != obj.metadata.annotations:
        patch["metadata"] = {"annotations": merge_patch(obj.metadata.annotations, annotations)}
    if not patch:
        return obj
    patch.setdefault("metadata", {})["resourceVersion"] = obj.resource_version
    return await controller_client(ctx).patch(type(obj), obj.key, patch, subresource="status")


async def patch_pod_status(
    ctx: Context, pod: Pod, *, condition: Mapping[str, Any] | None = None, **status: Any
) -> None:
    """Patch the status of a pod: one condition, which comes last if it is new, and other fields.

    Raises: NotFound when the pod no longer exists.
    """
    if condition is not None:
        types = [one.type for one in pod.status.conditions]
        order = types if condition["type"] in types else [*types, condition["type"]]
        status["$setElementOrder/conditions"] = [{"type": one} for one in order]
        status["conditions"] = [condition]
    patch = {"metadata": {"uid": pod.uid}, "status": status}
    await controller_client(ctx).patch(Pod, pod.key, patch, patch_type="strategic", subresource="status")
