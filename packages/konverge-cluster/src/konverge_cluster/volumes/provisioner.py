"""The simulated provisioner: creates volumes for claims, and deletes released ones. No storage is allocated.

It serves two provisioners, each like a program that clusters run:

- `rancher.io/local-path`, the one of kind: a volume is a directory on the node that the scheduler selected;
- `simulated.konverge.dev`: a volume of a CSI driver, which all nodes reach; with `allowedTopologies` in the class, the
  nodes of one of these topologies.
"""

from __future__ import annotations

from typing import Any, Final

from konverge.errors import AlreadyExists, NotFound
from konverge.k8s.core.v1 import Node, PersistentVolume, PersistentVolumeClaim
from konverge.k8s.storage.v1 import StorageClass
from konverge.objects import from_wire, to_wire
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.volumes.annotations import (
    BETA_STORAGE_PROVISIONER,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
)
from konverge_cluster.volumes.matching import class_of, reference_to, waits_for_consumer
from konverge_cluster.volumes.topology import affinity_for, local_affinity, matching_topology

__all__ = ["LOCAL_PATH", "SIMULATED", "DeletionReconciler", "ProvisioningReconciler"]

LOCAL_PATH: Final = "rancher.io/local-path"
SIMULATED: Final = "simulated.konverge.dev"
_PROVISIONERS: Final = (LOCAL_PATH, SIMULATED)
_RETRY: Final = 1.0
_LOCAL_DIRECTORY: Final = "/var/local-path-provisioner"


class ProvisioningReconciler(Reconciler[PersistentVolumeClaim]):
    """Creates the volume of a claim that requests one.

    A claim requests a volume when the binder has annotated it with the provisioner; with WaitForFirstConsumer, also
    with the selected node. The name of the volume follows from the uid of the claim, so that an interrupted attempt
    creates no second one. If the selected node no longer exists, the scheduler has to select another.
    """

    async def reconcile(self, obj: PersistentVolumeClaim, ctx: Context) -> Result | None:
        """Create the volume of a claim if it requests one."""
        if obj.spec.volume_name or _requested_provisioner(obj) not in _PROVISIONERS:
            return None
        storage_class = await ctx.get(StorageClass, class_of(obj))
        if storage_class is None:
            return Result.requeue(_RETRY, reason="its class is not there")
        selected = obj.metadata.annotations.get(SELECTED_NODE, "")
        if waits_for_consumer(storage_class) and not selected:
            return None
        try:
            node = await ctx.client.get(Node, selected) if selected else None
        except NotFound:
            await self._reschedule(obj, selected, ctx)
            return None
        await self._provision(obj, _volume_for(obj, storage_class, node), ctx)
        return None

    async def _provision(self, claim: PersistentVolumeClaim, volume: PersistentVolume, ctx: Context) -> None:
        if await ctx.get(PersistentVolume, volume.name) is not None:
            return
        provisioner = _requested_provisioner(claim)
        ctx.event(
            "Provisioning", f'External provisioner is provisioning volume for claim "{claim.key}"', reporter=provisioner
        )
        try:
            await ctx.client.using(field_manager=provisioner).create(volume)
        except AlreadyExists:
            return
        ctx.event("ProvisioningSucceeded", f"Successfully provisioned volume {volume.name}", reporter=provisioner)

    async def _reschedule(self, claim: PersistentVolumeClaim, node: str, ctx: Context) -> None:
        message = f'failed to get target node: nodes "{node}" not found'
        provisioner = _requested_provisioner(claim)
        ctx.event("ProvisioningFailed", message, warning=True, reporter=provisioner)
        del claim.metadata.annotations[SELECTED_NODE]
        await ctx.client.using(field_manager=provisioner).update(claim)


class DeletionReconciler(Reconciler[PersistentVolume]):
    """Deletes released volumes that this provisioner created, if their policy is Delete."""

    async def reconcile(self, obj: PersistentVolume, ctx: Context) -> None:
        """Delete a volume if it is released."""
        own = obj.metadata.annotations.get(PROVISIONED_BY) in _PROVISIONERS
        if own and obj.status.phase == "Released" and obj.spec.persistent_volume_reclaim_policy == "Delete":
            await ctx.delete(obj)


def _requested_provisioner(claim: PersistentVolumeClaim) -> str:
    annotations = claim.metadata.annotations
    return annotations.get(STORAGE_PROVISIONER) or annotations.get(BETA_STORAGE_PROVISIONER, "")


def _volume_for(claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node | None) -> PersistentVolume:
    """Return the volume of a claim."""
    name = f"pvc-{claim.uid}"
    requests = claim.spec.resources.requests if claim.spec.resources is not None else None
    spec: dict[str, Any] = {
        "capacity": {"storage": (requests or {})["storage"]},
        "accessModes": list(claim.spec.access_modes),
        "volumeMode": claim.spec.volume_mode or "Filesystem",
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
        "storageClassName": storage_class.name,
        "mountOptions": list(storage_class.mount_options),
        "claimRef": to_wire(reference_to(claim)),
        **_source_of(claim, storage_class, node),
    }
    if claim.spec.volume_attributes_class_name:
        spec["volumeAttributesClassName"] = claim.spec.volume_attributes_class_name
    metadata = {"name": name, "annotations": {PROVISIONED_BY: storage_class.provisioner}}
    return from_wire(
        PersistentVolume, {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}
    )


def _source_of(claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node | None) -> dict[str, Any]:
    name = f"pvc-{claim.uid}"
    if storage_class.provisioner == LOCAL_PATH:
        path = f"{_LOCAL_DIRECTORY}/{name}_{claim.namespace}_{claim.name}"
        source: dict[str, Any] = {"hostPath": {"path": path, "type": "DirectoryOrCreate"}}
        return source if node is None else {**source, "nodeAffinity": local_affinity(node)}
    source = {"csi": {"driver": SIMULATED, "volumeHandle": name, "volumeAttributes": dict(storage_class.parameters)}}
    topology = matching_topology(storage_class, node)
    return source if topology is None else {**source, "nodeAffinity": affinity_for(topology, node)}
