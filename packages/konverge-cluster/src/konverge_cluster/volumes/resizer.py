"""The simulated resizer: expands volumes of the driver `simulated.konverge.dev`, as an external resizer does.

A block volume has its new size at once. A file system has to be resized on the node of a pod that uses it: the claim
has the condition FileSystemResizePending until a kubelet has done that.
"""

from __future__ import annotations

from typing import Final

from konverge.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim
from konverge.objects import Quantity
from konverge.reconcile import Context, Reconciler
from konverge_cluster.clock import Clock, truncate_to_seconds, utc_now
from konverge_cluster.status_writes import write_status
from konverge_cluster.volumes.annotations import PRE_RESIZE_CAPACITY
from konverge_cluster.volumes.expansion import claim_size, pending_on_node, resizing, with_capacity
from konverge_cluster.volumes.matching import requested_size, volume_size
from konverge_cluster.volumes.provisioner import SIMULATED

__all__ = ["ResizeReconciler"]

_ON_NODE: Final = ("NodeResizePending", "NodeResizeInProgress")


class ResizeReconciler(Reconciler[PersistentVolumeClaim]):
    """Expands the volume of a claim that requests more than it has, in steps that can be interrupted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def reconcile(self, obj: PersistentVolumeClaim, ctx: Context) -> None:
        """Expand the volume of a claim, or complete its expansion."""
        volume = await ctx.get(PersistentVolume, obj.spec.volume_name) if obj.spec.volume_name else None
        if volume is None or volume.spec.csi is None or volume.spec.csi.driver != SIMULATED:
            return
        if obj.status.phase != "Bound":
            return
        if claim_size(obj) >= max(requested_size(obj), volume_size(volume)):
            await self._forget_old_size(volume, ctx)
        elif obj.status.allocated_resource_statuses.get("storage") not in _ON_NODE:
            await self._expand(obj, volume, ctx)

    async def _expand(self, claim: PersistentVolumeClaim, volume: PersistentVolume, ctx: Context) -> None:
        now = truncate_to_seconds(utc_now(self._clock))
        if claim.status.allocated_resource_statuses.get("storage") != "ControllerResizeInProgress":
            claim = await write_status(ctx, claim, resizing(claim, now))
            ctx.event("Resizing", f"External resizer is resizing volume {volume.name}", reporter=SIMULATED)
        size = claim.status.allocated_resources["storage"]
        needs_node = (volume.spec.volume_mode or "Filesystem") == "Filesystem"
        if volume_size(volume) < Quantity(size):
            volume.spec.capacity["storage"] = size
            if needs_node:
                volume.metadata.annotations.setdefault(PRE_RESIZE_CAPACITY, str(claim.status.capacity["storage"]))
            await ctx.client.using(field_manager=SIMULATED).update(volume)
        if needs_node:
            await write_status(ctx, claim, pending_on_node(claim, now))
            ctx.event("FileSystemResizeRequired", "Require file system resize of volume on node", reporter=SIMULATED)
        else:
            await write_status(ctx, claim, with_capacity(claim, size))
            ctx.event("VolumeResizeSuccessful", "Resize volume succeeded", reporter=SIMULATED)

    async def _forget_old_size(self, volume: PersistentVolume, ctx: Context) -> None:
        if volume.metadata.annotations.pop(PRE_RESIZE_CAPACITY, None) is not None:
            await ctx.client.using(field_manager=SIMULATED).update(volume)
