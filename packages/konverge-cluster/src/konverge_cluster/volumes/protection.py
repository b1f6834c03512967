"""Protection of claims and volumes in use: a finalizer delays their deletion until nothing uses them.

A claim is in use while a pod on a node names it, whatever its phase; a volume while it is Bound.
"""

from __future__ import annotations

from typing import ClassVar

from konverge.errors import NotFound
from konverge.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from konverge.objects import Resource
from konverge.reconcile import Context, Reconciler
from konverge_cluster.status_writes import controller_client
from konverge_cluster.volumes.annotations import CLAIM_PROTECTION, VOLUME_PROTECTION
from konverge_cluster.volumes.pod_claims import PODS_BY_CLAIM, uses_claim

__all__ = ["ClaimProtectionReconciler", "VolumeProtectionReconciler"]


class ClaimProtectionReconciler(Reconciler[PersistentVolumeClaim]):
    """Removes the finalizer of a deleted claim when no pod uses it, and adds it where it is missing."""

    reconcile_terminating: ClassVar[bool] = True

    async def reconcile(self, obj: PersistentVolumeClaim, ctx: Context) -> None:
        """Add or remove the finalizer of a claim."""
        if obj.metadata.deletion_timestamp is None:
            await _add(obj, CLAIM_PROTECTION, ctx)
        elif CLAIM_PROTECTION in obj.metadata.finalizers and not await _is_used(obj, ctx):
            await _remove(obj, CLAIM_PROTECTION, ctx)


class VolumeProtectionReconciler(Reconciler[PersistentVolume]):
    """Removes the finalizer of a deleted volume when it is not bound, and adds it where it is missing."""

    reconcile_terminating: ClassVar[bool] = True

    async def reconcile(self, obj: PersistentVolume, ctx: Context) -> None:
        """Add or remove the finalizer of a volume."""
        if obj.metadata.deletion_timestamp is None:
            await _add(obj, VOLUME_PROTECTION, ctx)
        elif VOLUME_PROTECTION in obj.metadata.finalizers and obj.status.phase != "Bound":
            await _remove(obj, VOLUME_PROTECTION, ctx)


async def _is_used(claim: PersistentVolumeClaim, ctx: Context) -> bool:
    """Report whether a pod uses a claim; the cache may be late, so that only the server can deny it."""
    cached = ctx.find(Pod, PODS_BY_CLAIM, claim.key, namespace=claim.namespace)
    if any(uses_claim(pod, claim) for pod in cached):
        return True
    live = await ctx.client.list(Pod, namespace=claim.namespace)
    return any(uses_claim(pod, claim) for pod in live)


async def _add(obj: Resource, finalizer: str, ctx: Context) -> None:
    if finalizer not in obj.metadata.finalizers:
        obj.metadata.finalizers = [*obj.metadata.finalizers, finalizer]
        await _update(obj, ctx)


async def _remove(obj: Resource, finalizer: str, ctx: Context) -> None:
    obj.metadata.finalizers = [one for one in obj.metadata.finalizers if one != finalizer]
    await _update(obj, ctx)


async def _update(obj: Resource, ctx: Context) -> None:
    try:
        await controller_client(ctx).update(obj)
    except NotFound:
        return
