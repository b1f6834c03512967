"""The reconciler of claims: binds them to volumes, and requests a new volume where none fits.

A binding is written in four steps: the reference of the volume, the phase of the volume, the volume name of the claim,
the status of the claim. After an interruption the next reconcile continues with the missing steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from konverge.cache import Event
from konverge.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from konverge.k8s.storage.v1 import StorageClass
from konverge.objects import Key
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.clock import Clock
from konverge_cluster.status_writes import controller_client
from konverge_cluster.volumes.annotations import (
    BETA_STORAGE_PROVISIONER,
    BIND_COMPLETED,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
)
from konverge_cluster.volumes.bindings import UNBOUND, VOLUMES_BY_CLAIM, bind, claim_of_volume, update_claim_status
from konverge_cluster.volumes.matching import (
    class_of,
    default_class,
    find_volume,
    has_class,
    is_bound_to,
    mismatch,
    waits_for_consumer,
)
from konverge_cluster.volumes.pod_claims import PODS_BY_CLAIM

__all__ = ["BINDER", "ClaimReconciler"]

BINDER: Final = "persistentvolume-controller"

_SCHEDULING_DELAY: Final = 15.0
_TERMINAL_PHASES: Final = ("Succeeded", "Failed")


class ClaimReconciler(Reconciler[PersistentVolumeClaim]):
    """Binds claims to volumes.

    - An unbound claim gets the volume that it names, or the one that fits best. If none fits, its provisioner is
      requested to create one; with WaitForFirstConsumer the scheduler decides first.
    - A claim that has lost its volume is Lost, and stays so.
    - An event is recorded when its text changes, not each time a claim is reconciled.
    """

    reconcile_terminating: ClassVar[bool] = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unbound: dict[Key, None] = {}
        self._reported: dict[Key, tuple[str, str]] = {}
        self._pods_since: dict[Key, float] = {}  # when a claim was first seen with an unscheduled pod

    def gone(self, key: Key) -> None:
        """Forget a claim."""
        self._unbound.pop(key, None)
        self._reported.pop(key, None)
        self._pods_since.pop(key, None)

    def volume_changed(self, event: Event) -> Iterable[Key]:
        """Map a volume to the claims that it is or was bound to, and to all unbound claims if it may fit one."""
        references = [claim_of_volume(entry) for entry in (event.old, event.new) if entry is not None]
        keys = [one.key for one in references if one.key != UNBOUND]
        may_fit = event.new is None or any(not one.uid for one in references)
        return [*keys, *self._unbound] if may_fit else keys

    def class_changed(self, _: Event) -> Iterable[Key]:
        """Map a storage class to all unbound claims: they may have a default class or a provisioner now."""
        return list(self._unbound)

    async def reconcile(self, obj: PersistentVolumeClaim, ctx: Context) -> Result | None:
        """Bind a claim, or maintain the status of a bound one."""
        if BIND_COMPLETED in obj.metadata.annotations:
            self.gone(obj.key)
            await self._check_binding(obj, ctx)
            return None
        self._unbound[obj.key] = None
        if obj.spec.volume_name:
            await self._bind_requested(obj, ctx)
            return None
        return await self._bind_any(obj, ctx)

    # Unbound claims

    async def _bind_any(self, claim: PersistentVolumeClaim, ctx: Context) -> Result | None:
        storage_class = await ctx.get(StorageClass, class_of(claim)) if class_of(claim) else None
        delayed = waits_for_consumer(storage_class)
        candidates = [
            *ctx.find(PersistentVolume, VOLUMES_BY_CLAIM, UNBOUND),
            *ctx.find(PersistentVolume, VOLUMES_BY_CLAIM, claim.key),
        ]
        volume = find_volume(claim, candidates, reserved_only=delayed)
        if volume is not None:
            await bind(volume, claim, ctx)
            return None
        if await self._assign_default_class(claim, ctx):
            return Result.requeue(0.0, reason="it has a class now")
        if delayed and SELECTED_NODE not in claim.metadata.annotations:
            wait = self._report_waiting(claim, ctx)
            await update_claim_status(claim, "Pending", None, ctx)
            return None if wait is None else Result.requeue(wait, reason="a pod waits to be scheduled")
        if class_of(claim):
            await self._provision(claim, storage_class, ctx)
            return None
        message = "no persistent volumes available for this claim and no storage class is set"
        self._report(claim, ctx, "FailedBinding", message)
        await update_claim_status(claim, "Pending", None, ctx)
        return None

    async def _assign_default_class(self, claim: PersistentVolumeClaim, ctx: Context) -> bool:
        """Set the default class on a claim that was created before there was one; report whether there is one."""
        if has_class(claim):
            return False
        found = default_class(await ctx.list(StorageClass))
        if found is None:
            return False
        claim.spec.storage_class_name = found.name
        await controller_client(ctx).update(claim)
        return True

    def _report_waiting(self, claim: PersistentVolumeClaim, ctx: Context) -> float | None:
        """Record what a claim waits for; return when to look again, since an unscheduled pod is reported late."""
        pods = ctx.find(Pod, PODS_BY_CLAIM, claim.key, namespace=claim.namespace)
        names = [pod.name for pod in pods if not pod.spec.node_name and pod.status.phase not in _TERMINAL_PHASES]
        if not names:
            self._pods_since.pop(claim.key, None)
            self._report(claim, ctx, "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
            return None
        now = self._clock()
        left = self._pods_since.setdefault(claim.key, now) + _SCHEDULING_DELAY - now
        if left > 0:
            return left
        plural = "s" if len(names) > 1 else ""
        message = f"waiting for pod{plural} {','.join(sorted(names))} to be scheduled"
        self._report(claim, ctx, "WaitForPodScheduled", message)
        return None

    async def _provision(self, claim: PersistentVolumeClaim, storage_class: StorageClass | None, ctx: Context) -> None:
        if storage_class is None:
            message = f'storageclass.storage.k8s.io "{class_of(claim)}" not found'
            self._report(claim, ctx, "ProvisioningFailed", message, warning=True)
            return
        provisioner = storage_class.provisioner
        if provisioner.startswith("kubernetes.io/"):
            message = f"no volume plugin matched name: {provisioner}"
            self._report(claim, ctx, "ProvisioningFailed", message, warning=True)
            return
        claim.metadata.annotations |= {BETA_STORAGE_PROVISIONER: provisioner, STORAGE_PROVISIONER: provisioner}
        claim = await controller_client(ctx).update(claim)
        message = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the"
            " system administrator. If volume creation is delayed, please verify that the provisioner is running and"
            " correctly registered."
        )
        self._report(claim, ctx, "ExternalProvisioning", message)

    async def _bind_requested(self, claim: PersistentVolumeClaim, ctx: Context) -> None:
        volume = await ctx.get(PersistentVolume, claim.spec.volume_name or "")
        if volume is None:
            await update_claim_status(claim, "Pending", None, ctx)
            return
        if is_bound_to(volume, claim):
            await bind(volume, claim, ctx)
            return
        if volume.spec.claim_ref is not None:
            message = f'volume "{volume.name}" already bound to a different claim.'
            self._report(claim, ctx, "FailedBinding", message, warning=True)
        elif reason := mismatch(volume, claim):
            message = f'Cannot bind to requested volume "{volume.name}": {reason}'
            self._report(claim, ctx, "VolumeMismatch", message, warning=True)
        else:
            await bind(volume, claim, ctx)
            return
        await update_claim_status(claim, "Pending", None, ctx)

    # Bound claims

    async def _check_binding(self, claim: PersistentVolumeClaim, ctx: Context) -> None:
        if not claim.spec.volume_name:
            message = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
            await self._lose(claim, "ClaimLost", message, ctx)
            return
        volume = await ctx.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            await self._lose(claim, "ClaimLost", message, ctx)
        elif volume.spec.claim_ref is None or volume.spec.claim_ref.uid == claim.uid:
            await bind(volume, claim, ctx)
        else:
            message = "Two claims are bound to the same volume, this one is bound incorrectly"
            await self._lose(claim, "ClaimMisbound", message, ctx)

    async def _lose(self, claim: PersistentVolumeClaim, reason: str, message: str, ctx: Context) -> None:
        if claim.status.phase != "Lost":
            await update_claim_status(claim, "Lost", None, ctx)
            ctx.event(reason, message, warning=True, reporter=BINDER)

    def _report(
        self, claim: PersistentVolumeClaim, ctx: Context, reason: str, message: str, *, warning: bool = False
    ) -> None:
        if self._reported.get(claim.key) != (reason, message):
            self._reported[claim.key] = (reason, message)
            ctx.event(reason, message, warning=warning, reporter=BINDER)
