"""Expansion of bound claims that request more than their volume has.

An event says that the resizer of the storage driver has to expand the volume; the statuses of each step are here.
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
from konverge_cluster.volumes.matching import requested_size

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


class ExpansionReconciler(Reconciler[PersistentVolumeClaim]):
    """Records that an external resizer has to expand the volume of a claim; no volume is expanded in-tree any more."""

    async def reconcile(self, obj: PersistentVolumeClaim, ctx: Context) -> None:
        """Record an event for a claim that requests more than it has."""
        if obj.status.phase != "Bound" or requested_size(obj) <= claim_size(obj):
            return
        volume = await ctx.get(PersistentVolume, obj.spec.volume_name or "")
        reference = volume.spec.claim_ref if volume is not None else None
        if volume is not None and reference is not None and reference.uid == obj.uid:
            message = "waiting for an external controller to expand this PVC"
            ctx.event("ExternalExpanding", message, reporter=_EXPANDER)


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
