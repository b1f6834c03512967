"""The reconciler of volumes: their phases, and what happens to a volume whose claim is gone."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from konverge.errors import NotFound
from konverge.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim
from konverge.objects import Key
from konverge.reconcile import Context, Reconciler
from konverge_cluster.status_writes import controller_client
from konverge_cluster.volumes.annotations import PROVISIONED_BY
from konverge_cluster.volumes.bindings import unbind, update_phase
from konverge_cluster.volumes.claim_reconciler import BINDER

__all__ = ["VolumeReconciler"]

_DELETABLE_PATH: Final = re.compile("/tmp/.+")
_RECLAIMED_PHASES: Final = ("Released", "Failed")


class VolumeReconciler(Reconciler[PersistentVolume]):
    """Maintains the phase of each volume, and reclaims volumes whose claim is gone.

    A volume is Available without a claim, Bound with one, and Released when the claim is gone. With the policy Delete
    its provisioner deletes it then; a volume that was created by hand is deleted if it is a directory below /tmp, as in
    the real controller, and Failed otherwise. With Retain it stays Released.
    """

    reconcile_terminating: ClassVar[bool] = True

    async def reconcile(self, obj: PersistentVolume, ctx: Context) -> None:
        """Write the phase of a volume, or reclaim it."""
        reference = obj.spec.claim_ref
        if reference is None or not reference.uid:
            await update_phase(obj, "Available", ctx)
            return
        key = Key(reference.namespace or "", reference.name or "")
        claim = await _live_claim(key, reference.uid, ctx)
        if claim is None:
            await self._release(obj, ctx)
        elif claim.spec.volume_name == obj.name:
            await update_phase(obj, "Bound", ctx)
        elif claim.spec.volume_name:
            await self._give_up(obj, ctx)
        elif (claim.spec.volume_mode or "Filesystem") != (obj.spec.volume_mode or "Filesystem"):
            _report_mode(obj, claim, ctx)

    async def _give_up(self, volume: PersistentVolume, ctx: Context) -> None:
        """Release a volume whose claim was bound to another one."""
        policy = volume.spec.persistent_volume_reclaim_policy
        if PROVISIONED_BY in volume.metadata.annotations and policy == "Delete":
            await self._release(volume, ctx)
        else:
            await unbind(volume, ctx)

    async def _release(self, volume: PersistentVolume, ctx: Context) -> None:
        if volume.status.phase not in _RECLAIMED_PHASES:
            volume = await update_phase(volume, "Released", ctx)
        policy = volume.spec.persistent_volume_reclaim_policy
        if policy == "Delete":
            await _delete(volume, ctx)
        elif policy == "Recycle":
            await _recycle(volume, ctx)


async def _live_claim(key: Key, uid: str, ctx: Context) -> PersistentVolumeClaim | None:
    """Return the claim with a uid; the cache may be late, so that only the server can deny it."""
    claim = await ctx.get(PersistentVolumeClaim, key)
    if claim is None or claim.uid != uid:
        try:
            claim = await ctx.client.get(PersistentVolumeClaim, key)
        except NotFound:
            return None
    return claim if claim.uid == uid else None


async def _delete(volume: PersistentVolume, ctx: Context) -> None:
    """Delete a released volume that has no provisioner."""
    if volume.metadata.annotations.get(PROVISIONED_BY) or volume.spec.csi is not None:
        return
    path = volume.spec.host_path.path if volume.spec.host_path is not None else ""
    if path and _DELETABLE_PATH.search(path):
        await controller_client(ctx).delete(volume, missing_ok=True)
    elif path:
        message = f"host_path deleter only supports /tmp/.+ but received provided {path}"
        await _fail(volume, "VolumeFailedDelete", message, ctx)
    else:
        message = f'error getting deleter volume plugin for volume "{volume.name}": no volume plugin matched'
        await _fail(volume, "VolumeFailedDelete", message, ctx)


async def _recycle(volume: PersistentVolume, ctx: Context) -> None:
    """Make a released volume available again; a real recycler deletes its files first."""
    if volume.spec.host_path is None and volume.spec.nfs is None:
        await _fail(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!", ctx)
        return
    ctx.event("VolumeRecycled", "Volume recycled", reporter=BINDER)
    await unbind(volume, ctx)


async def _fail(volume: PersistentVolume, reason: str, message: str, ctx: Context) -> None:
    if volume.status.phase != "Failed":
        await update_phase(volume, "Failed", ctx, message=message)
        ctx.event(reason, message, warning=True, reporter=BINDER)


def _report_mode(volume: PersistentVolume, claim: PersistentVolumeClaim, ctx: Context) -> None:
    of_volume = f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{claim.name}"'
    of_claim = f'Cannot bind PersistentVolume "{volume.name}" to requested PersistentVolumeClaim'
    end = "due to incompatible volumeMode."
    ctx.event("VolumeMismatch", f"{of_volume} {end}", warning=True, reporter=BINDER)
    ctx.event("VolumeMismatch", f"{of_claim} {end}", warning=True, regarding=claim, reporter=BINDER)
