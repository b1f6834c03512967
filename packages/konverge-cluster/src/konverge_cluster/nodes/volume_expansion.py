"""The last step of an expansion: the kubelet of a pod that uses the volume resizes its file system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from konverge.controller import Controller, controller_for
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge.reconcile import Context, Reconciler
from konverge.triggers import anything
from konverge_cluster.nodes.node_objects import SimulatedNode
from konverge_cluster.volumes.expansion import with_capacity
from konverge_cluster.volumes.pod_claims import PODS_BY_CLAIM, claims_of_pod, to_claims

__all__ = ["volume_expansion_controller"]

_KUBELET: Final = "kubelet"
_ON_NODE: Final = ("NodeResizePending", "NodeResizeInProgress")


class VolumeExpansionReconciler(Reconciler[PersistentVolumeClaim]):
    """Completes the expansion of a claim when a pod that uses it runs on a simulated node."""

    def __init__(self, nodes: Mapping[str, SimulatedNode]) -> None:
        self._nodes = nodes

    async def reconcile(self, obj: PersistentVolumeClaim, ctx: Context) -> None:
        """Resize the file system of a claim if it is pending and a pod runs."""
        if obj.status.allocated_resource_statuses.get("storage") not in _ON_NODE:
            return
        pods = ctx.find(Pod, PODS_BY_CLAIM, obj.key, namespace=obj.namespace)
        pod = next((one for one in pods if self._runs(one)), None)
        if pod is None:
            return
        client = ctx.client.using(field_manager=_KUBELET)
        if obj.status.allocated_resource_statuses["storage"] == "NodeResizePending":
            obj.status.allocated_resource_statuses["storage"] = "NodeResizeInProgress"
            obj = await client.update_status(obj)
        obj.status = with_capacity(obj, obj.status.allocated_resources["storage"])
        await client.update_status(obj)
        message = f'MountVolume.NodeExpandVolume succeeded for volume "{obj.spec.volume_name}" {pod.spec.node_name}'
        for regarding in (pod, obj):
            ctx.event("FileSystemResizeSuccessful", message, regarding=regarding, reporter=_KUBELET)

    def _runs(self, pod: Pod) -> bool:
        node = self._nodes.get(pod.spec.node_name or "")
        return node is not None and node.down_since is None and pod.status.phase == "Running"


def volume_expansion_controller(nodes: Mapping[str, SimulatedNode]) -> Controller[PersistentVolumeClaim]:
    """Return the controller by which kubelets complete the expansion of claims."""
    builder = controller_for(PersistentVolumeClaim).named("kubelet-volume-expansion").predicate(anything)
    builder.watches(Pod, to_claims).index(Pod, PODS_BY_CLAIM, claims_of_pod)
    return builder.needs(PersistentVolumeClaim, "patch", subresource="status").build(VolumeExpansionReconciler(nodes))
