"""Claims of ephemeral volumes: created for each pod from the template in its volume, and deleted with the pod."""

from __future__ import annotations

from typing import Any

from konverge.cache import Event
from konverge.controller import Controller, controller_for
from konverge.errors import AlreadyExists, KonvergeError, TerminalError
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge.objects import from_wire, to_wire
from konverge.reconcile import Context, Reconciler
from konverge.triggers import Predicate, to_referring
from konverge_cluster.server_messages import is_namespace_terminating
from konverge_cluster.status_writes import controller_client
from konverge_cluster.volumes.pod_claims import PODS_BY_CLAIM, claims_of_pod, is_created_for

__all__ = ["ephemeral_volume_controller"]

_MARK = b'"ephemeral"'


class EphemeralVolumeReconciler(Reconciler[Pod]):
    """Creates the claims of the ephemeral volumes of a pod; garbage collection deletes them with the pod."""

    async def reconcile(self, obj: Pod, ctx: Context) -> None:
        """Create the missing claims of a pod.

        Raises: TerminalError when a claim of that name belongs to somebody else; its deletion enqueues the pod again.
        """
        for volume in to_wire(obj.spec).get("volumes") or ():
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            if template is not None:
                await self._ensure(obj, volume["name"], template, ctx)

    async def _ensure(self, pod: Pod, volume: str, template: dict[str, Any], ctx: Context) -> None:
        name = f"{pod.name}-{volume}"
        claim = await ctx.get(PersistentVolumeClaim, name)
        if claim is None:
            claim = await _create(pod, name, template, ctx)
        if claim is not None and not is_created_for(claim, pod.uid):
            text = f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
            ctx.event("FailedBinding", f"ephemeral volume {volume}: {text}", warning=True, reporter="ephemeral_volume")
            raise TerminalError(f"pod {pod.key}, ephemeral volume {volume}: {text}")


async def _create(pod: Pod, name: str, template: dict[str, Any], ctx: Context) -> PersistentVolumeClaim | None:
    """Create the claim of a volume; return None if it exists meanwhile, or its namespace is being deleted."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    metadata = {
        **template.get("metadata", {}),
        "name": name,
        "namespace": pod.namespace,
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    wire = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template["spec"]}
    try:
        return await controller_client(ctx).create(from_wire(PersistentVolumeClaim, wire))
    except AlreadyExists:
        return None
    except KonvergeError as error:
        if is_namespace_terminating(error):
            return None
        raise


def _has_ephemeral_volume(event: Event) -> bool:
    return _MARK in event.entry.json


def _is_deletion(event: Event) -> bool:
    return event.new is None


def ephemeral_volume_controller() -> Controller[Pod]:
    """Return the controller that creates the claims of ephemeral volumes."""
    builder = controller_for(Pod).named("ephemeral-volume-controller").predicate(Predicate(_has_ephemeral_volume))
    builder.index(Pod, PODS_BY_CLAIM, claims_of_pod)
    builder.watches(PersistentVolumeClaim, to_referring(Pod, index=PODS_BY_CLAIM), predicate=Predicate(_is_deletion))
    return builder.needs(PersistentVolumeClaim, "create").build(EphemeralVolumeReconciler())
