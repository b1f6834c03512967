"""Expansion of bound claims that request more than their volume has.

Directories on a host are expanded here, at once. For the volumes of a driver an event says that its resizer has to.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from konverge.k8s.core.v1 import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimCondition,
    PersistentVolumeClaimStatus,
)
from konverge.objects import Quantity, replace
from konverge.reconcile import Context, Reconciler
from konverge_cluster.clock import Clock, truncate_to_seconds, utc_now
from konverge_cluster.status_writes import controller_client, write_status
from konverge_cluster.volumes.annotations import STORAGE_RESIZER
from konverge_cluster.volumes.matching import requested_size, volume_size

__all__ = [
    "ExpansionReconciler",
    "claim_size",
    "pending_on_node",
    "resizing",
    "with_capacity",
]

_RESIZE_CONDITIONS: Final = ("FileSystemResizePending", "Resizing", "ControllerResizeError", "NodeResizeError")
_PENDING: Final = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."
_EXPANDER: Final = "volume_expand"
_HOST_PATH: Final = "kubernetes.io/host-path"


class ExpansionReconciler(Reconciler[PersistentVolumeClaim]):
    """Expands the volume of a claim that requests more, or records that an external resizer must.

    The status of the claim has the condition Resizing and the allocated size before the volume grows, so that an
    interrupted expansion is continued.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def reconcile(self, obj: PersistentVolumeClaim, ctx: Context) -> None:
        """Expand the volume of a claim if it requests more."""
        if obj.status.phase != "Bound" or requested_size(obj) <= claim_size(obj):
            return
        volume = await ctx.get(PersistentVolume, obj.spec.volume_name or "")
        reference = volume.spec.claim_ref if volume is not None else None
        if volume is None or reference is None or reference.uid != obj.uid:
            return
        if volume.spec.host_path is None:
            message = "waiting for an external controller to expand this PVC"
            warning = volume.spec.csi is None
            ctx.event("ExternalExpanding", message, warning=warning, reporter=_EXPANDER)
            return
        await self._expand(obj, volume, ctx)

    async def _expand(self, claim: PersistentVolumeClaim, volume: PersistentVolume, ctx: Context) -> None:
        now = truncate_to_seconds(utc_now(self._clock))
        annotations = {**claim.metadata.annotations, STORAGE_RESIZER: _HOST_PATH}
        claim = await write_status(ctx, claim, resizing(claim, now), annotations=annotations)
        size = claim.status.allocated_resources["storage"]
        if volume_size(volume) < Quantity(size):
            volume.spec.capacity["storage"] = size
            await controller_client(ctx).update(volume)
        await write_status(ctx, claim, with_capacity(claim, size))
        message = f"ExpandVolume succeeded for volume {claim.namespace}/{claim.name}"
        ctx.event("VolumeResizeSuccessful", message, reporter=_EXPANDER)


def claim_size(claim: PersistentVolumeClaim) -> Quantity:
    """Return the capacity that a claim has."""
    return Quantity(claim.status.capacity.get("storage", "0"))


def resizing(claim: PersistentVolumeClaim, now: datetime) -> PersistentVolumeClaimStatus:
    """Return the status of a claim whose volume is being resized to what the claim requests."""
    condition = PersistentVolumeClaimCondition(type="Resizing", status="True", last_transition_time=now)
    requests = claim.spec.resources.requests if claim.spec.resources is not None else None
    return replace(
        claim.status,
        conditions=_with_condition(claim, condition, keep=False),
        allocated_resource_statuses=_with_progress(claim, "ControllerResizeInProgress"),
        allocated_resources={**claim.status.allocated_resources, "storage": (requests or {})["storage"]},
    )


def pending_on_node(claim: PersistentVolumeClaim, now: datetime) -> PersistentVolumeClaimStatus:
    """Return the status of a claim whose volume is resized, and whose file system a node has to resize."""
    condition = PersistentVolumeClaimCondition(
        type="FileSystemResizePending", status="True", last_transition_time=now, message=_PENDING
    )
    return replace(
        claim.status,
        conditions=_with_condition(claim, condition, keep=True),
        allocated_resource_statuses=_with_progress(claim, "NodeResizePending"),
    )


def with_capacity(claim: PersistentVolumeClaim, size: Any) -> PersistentVolumeClaimStatus:
    """Return the status of a claim with a new capacity, without the conditions of its expansion."""
    progress = {name: one for name, one in claim.status.allocated_resource_statuses.items() if name != "storage"}
    return replace(
        claim.status,
        capacity={**claim.status.capacity, "storage": size},
        conditions=_with_condition(claim, None, keep=False),
        allocated_resource_statuses=progress,
    )


def _with_progress(claim: PersistentVolumeClaim, progress: str) -> dict[str, str]:
    return {**claim.status.allocated_resource_statuses, "storage": progress}


def _with_condition(
    claim: PersistentVolumeClaim, condition: PersistentVolumeClaimCondition | None, *, keep: bool
) -> list[PersistentVolumeClaimCondition]:
    """Return the conditions of a claim with one more; `keep` keeps the other conditions of an expansion."""
    new_type = condition.type if condition is not None else ""
    found: list[PersistentVolumeClaimCondition] = []
    for one in claim.status.conditions or ():
        if condition is not None and one.type == new_type:
            found.append(one if one.status == condition.status else condition)
            condition = None
        elif keep or one.type not in _RESIZE_CONDITIONS:
            found.append(one)
    return found if condition is None else [*found, condition]
