"""The volumes of a pod: a filter for the nodes that reach its bound volumes, and where the others can be bound.

A claim whose class waits for its consumer is bound to a volume that the node reaches, or provisioned there if the class
allows that node. A claim that was already assigned to a node for provisioning excludes all other nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from konverge.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim
from konverge.k8s.storage.v1 import StorageClass
from konverge.objects import to_wire
from konverge_cluster.nodes.scheduling.node_affinity import matches_term
from konverge_cluster.nodes.scheduling.snapshot import NodeCheck, NodeInfo, PodInfo, PodRejected, Rejection, Snapshot
from konverge_cluster.volumes.annotations import NO_PROVISIONER, SELECTED_NODE
from konverge_cluster.volumes.matching import class_of, find_volume_on_node, requested_size
from konverge_cluster.volumes.topology import allows_node

__all__ = ["PodVolumes", "VolumeBindings", "filter_volumes"]

_NODE_CONFLICT: Final = Rejection("node(s) didn't match PersistentVolume's node affinity")
_BIND_CONFLICT: Final = Rejection("node(s) didn't find available persistent volumes to bind")
_NO_VOLUME: Final = Rejection("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
_IN_USE: Final = Rejection(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
    resolvable=True,
)


@dataclass(frozen=True)
class VolumeBindings:
    """The bindings of a pod on one node, and the claims for which volumes have to be created there.

    With rejections the node does not fit, and there is nothing else.
    """

    rejections: Sequence[Rejection] = ()
    bindings: Sequence[tuple[PersistentVolume, PersistentVolumeClaim]] = ()
    to_create: Sequence[PersistentVolumeClaim] = ()


@dataclass(frozen=True)
class PodVolumes:
    """The claims of a pod and what they can be bound to.

    `rejection` is why the pod fits on no node now. `bound` are the volumes of bound claims, None for one that is gone.
    `unbound` are the claims that wait for the pod, `candidates` the volumes that are not bound.
    """

    rejection: str = ""
    in_use: bool = False
    bound: Sequence[PersistentVolume | None] = ()
    unbound: Sequence[PersistentVolumeClaim] = ()
    candidates: Sequence[PersistentVolume] = ()
    classes: Mapping[str, StorageClass] = field(default_factory=dict)

    def on_node(self, node: NodeInfo) -> VolumeBindings:
        """Return what has to be done for the claims of the pod on a node."""
        rejections = [_IN_USE] if self.in_use else []
        if any(one is not None and not _reaches(one, node) for one in self.bound):
            rejections.append(_NODE_CONFLICT)
        found = self._bind_unbound(node)
        if found is None:
            rejections.append(_BIND_CONFLICT)
        if None in self.bound:
            rejections.append(_NO_VOLUME)
        return VolumeBindings(rejections) if rejections or found is None else found

    def _bind_unbound(self, node: NodeInfo) -> VolumeBindings | None:
        bindings: list[tuple[PersistentVolume, PersistentVolumeClaim]] = []
        to_create: list[PersistentVolumeClaim] = []
        for claim in sorted(self.unbound, key=requested_size):
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected not in (None, node.name):
                return None
            taken = {volume.name for volume, _ in bindings}
            volume = self._find(claim, node, taken) if selected is None else None
            if volume is not None:
                bindings.append((volume, claim))
            elif self._can_provision(claim, node):
                to_create.append(claim)
            else:
                return None
        return VolumeBindings(bindings=bindings, to_create=to_create)

    def _find(self, claim: PersistentVolumeClaim, node: NodeInfo, taken: set[str]) -> PersistentVolume | None:
        return find_volume_on_node(claim, self.candidates, lambda one: _reaches(one, node), excluded=taken)

    def _can_provision(self, claim: PersistentVolumeClaim, node: NodeInfo) -> bool:
        storage_class = self.classes.get(class_of(claim))
        if storage_class is None or storage_class.provisioner == NO_PROVISIONER:
            return False
        return allows_node(storage_class, node.labels)


def filter_volumes(pod: PodInfo, _: Snapshot) -> NodeCheck | None:
    """Reject nodes that do not reach the volumes of a pod, or where its claims cannot be bound.

    Raises: PodRejected when a claim is missing, lost, being deleted, or has to be bound before.
    """
    volumes = pod.volumes
    if volumes is None:
        return None
    if volumes.rejection:
        raise PodRejected(volumes.rejection)
    return lambda node: volumes.on_node(node).rejections


def _reaches(volume: PersistentVolume, node: NodeInfo) -> bool:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return any(matches_term(term, node) for term in to_wire(affinity.required)["nodeSelectorTerms"])
