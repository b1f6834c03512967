"""Volumes: the controllers of claims and volumes, and a simulated provisioner, as ordinary konverge controllers.

    manager.add(*volume_controllers())          # what kube-controller-manager does
    manager.add(*provisioner_controllers())     # what the provisioner and the resizer of a storage vendor do

Claims are bound to volumes, volumes are reclaimed, claims are expanded, and neither is deleted while it is in use.
`matching` decides which volume fits a claim; the scheduler uses it, too. Not implemented: attachment of volumes, volume
attributes classes, snapshots, capacity tracking, translation of in-tree volumes to CSI.
"""

from __future__ import annotations

from typing import Any

from konverge.cache import Event
from konverge.controller import Controller, controller_for
from konverge.k8s.core.v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod
from konverge.k8s.storage.v1 import StorageClass
from konverge.objects import Key, wall_clock
from konverge.triggers import anything, to_referring
from konverge_cluster.clock import Clock
from konverge_cluster.volumes.bindings import VOLUMES_BY_CLAIM, claims_of_volume, to_claim_of_volume
from konverge_cluster.volumes.claim_reconciler import ClaimReconciler
from konverge_cluster.volumes.default_class import create_default_class
from konverge_cluster.volumes.ephemeral import ephemeral_volume_controller
from konverge_cluster.volumes.expansion import ExpansionReconciler
from konverge_cluster.volumes.pod_claims import PODS_BY_CLAIM, claims_of_pod, to_claims
from konverge_cluster.volumes.protection import ClaimProtectionReconciler, VolumeProtectionReconciler
from konverge_cluster.volumes.provisioner import DeletionReconciler, ProvisioningReconciler
from konverge_cluster.volumes.resizer import ResizeReconciler
from konverge_cluster.volumes.volume_reconciler import VolumeReconciler

__all__ = ["create_default_class", "provisioner_controllers", "volume_controllers"]


def volume_controllers(*, clock: Clock = wall_clock) -> tuple[Controller[Any], ...]:
    """Return the controllers of claims and volumes; `clock` is the wall clock of the cluster, in seconds."""
    return (
        _claim_binder(clock),
        _volume_binder(),
        _claim_protection(),
        _volume_protection(),
        _expander(),
        ephemeral_volume_controller(),
    )


def provisioner_controllers(*, clock: Clock = wall_clock) -> tuple[Controller[Any], ...]:
    """Return the controllers of the simulated provisioner and resizer."""
    claims = controller_for(PersistentVolumeClaim).named("simulated-provisioner")
    claims.watches(StorageClass, _to_nothing).watches(PersistentVolume, _to_nothing).needs(Node, "get")
    claims.needs(PersistentVolume, "create").needs(PersistentVolumeClaim, "patch")
    volumes = controller_for(PersistentVolume).named("simulated-volume-deleter").predicate(anything)
    volumes.needs(PersistentVolume, "delete")
    resizer = controller_for(PersistentVolumeClaim).named("simulated-resizer").predicate(anything)
    resizer.watches(PersistentVolume, to_claim_of_volume).needs(PersistentVolume, "patch")
    resizer.needs(PersistentVolumeClaim, "patch", subresource="status")
    return (
        claims.build(ProvisioningReconciler()),
        volumes.build(DeletionReconciler()),
        resizer.build(ResizeReconciler(clock)),
    )


def _claim_binder(clock: Clock) -> Controller[PersistentVolumeClaim]:
    reconciler = ClaimReconciler(clock)
    builder = controller_for(PersistentVolumeClaim).named("persistentvolumeclaim-binder")
    builder.max_concurrent_reconciles(1)  # two claims at once would select the same volume
    builder.watches(PersistentVolume, reconciler.volume_changed).index(
        PersistentVolume, VOLUMES_BY_CLAIM, claims_of_volume
    )
    builder.watches(StorageClass, reconciler.class_changed)
    builder.watches(Pod, to_claims).index(Pod, PODS_BY_CLAIM, claims_of_pod)
    builder.needs(PersistentVolumeClaim, "patch").needs(PersistentVolumeClaim, "patch", subresource="status")
    builder.needs(PersistentVolume, "patch").needs(PersistentVolume, "patch", subresource="status")
    return builder.build(reconciler)


def _volume_binder() -> Controller[PersistentVolume]:
    builder = controller_for(PersistentVolume).named("persistentvolume-binder")
    builder.index(PersistentVolume, VOLUMES_BY_CLAIM, claims_of_volume)
    builder.watches(PersistentVolumeClaim, to_referring(PersistentVolume, index=VOLUMES_BY_CLAIM))
    builder.needs(PersistentVolume, "patch", "delete").needs(PersistentVolume, "patch", subresource="status")
    return builder.needs(PersistentVolumeClaim, "get").build(VolumeReconciler())


def _claim_protection() -> Controller[PersistentVolumeClaim]:
    builder = controller_for(PersistentVolumeClaim).named("persistentvolumeclaim-protection-controller")
    builder.watches(Pod, to_claims).index(Pod, PODS_BY_CLAIM, claims_of_pod)
    return builder.needs(PersistentVolumeClaim, "patch").needs(Pod, "list").build(ClaimProtectionReconciler())


def _volume_protection() -> Controller[PersistentVolume]:
    builder = controller_for(PersistentVolume).named("persistentvolume-protection-controller").predicate(anything)
    return builder.needs(PersistentVolume, "patch").build(VolumeProtectionReconciler())


def _expander() -> Controller[PersistentVolumeClaim]:
    builder = controller_for(PersistentVolumeClaim).named("persistentvolume-expander-controller")
    return builder.watches(PersistentVolume, _to_nothing).build(ExpansionReconciler())


def _to_nothing(_: Event) -> tuple[Key, ...]:
    """Map to no key: the kind is only read."""
    return ()
