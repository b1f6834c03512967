"""The retention policy of claims, as owner references: whoever controls a claim takes it along when it is deleted.

1. A claim to delete with the StatefulSet is controlled by it.
2. A claim to delete when its pod is scaled away is controlled by the pod, as soon as the pod is condemned.
3. A claim to retain has neither reference.
4. A claim that another object controls, or an earlier object of the same name, is left alone.
"""

from __future__ import annotations

from typing import Final

from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge.objects import OwnerReference, Resource
from konverge_cluster.workloads.pods.claims import owner_reference
from konverge_cluster.workloads.stateful_sets.ordinals import is_in_range

__all__ = ["deletes_when_scaled", "has_unexpected_controller", "is_stale", "is_up_to_date", "updated_references"]

_DELETE: Final = "Delete"


def deletes_when_scaled(stateful_set: StatefulSet) -> bool:
    """Report whether a claim is deleted when its pod is scaled away."""
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    return policy is not None and policy.when_scaled == _DELETE


def is_stale(claim: PersistentVolumeClaim, owner: Resource) -> bool:
    """Report whether a claim refers to an earlier object with the kind and name of this owner."""
    reference = next((one for one in claim.metadata.owner_references if _names(one, owner)), None)
    return reference is not None and reference.uid != owner.uid


def has_unexpected_controller(claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: Pod) -> bool:
    """Report whether the policy cannot be followed since another object controls a claim."""
    if not deletes_when_scaled(stateful_set) and not _deletes_when_deleted(stateful_set):
        return False
    for reference in claim.metadata.owner_references:
        owner = next((one for one in (stateful_set, pod) if _names(reference, one)), None)
        if (reference.uid != owner.uid) if owner is not None else reference.controller:
            return True
    return False


def is_up_to_date(claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: Pod) -> bool:
    """Report whether the owner references of a claim follow the policy, or must not be changed."""
    if is_stale(claim, stateful_set) or is_stale(claim, pod):
        return True
    own = [one for one in claim.metadata.owner_references if one.uid in (stateful_set.uid, pod.uid)]
    if has_unexpected_controller(claim, stateful_set, pod):
        return not own
    if not all(reference.controller for reference in own):
        return False
    return {reference.uid for reference in own} == {owner.uid for owner in _owners(stateful_set, pod)}


def updated_references(claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: Pod) -> list[OwnerReference]:
    """Return the owner references of a claim that follow the policy."""
    references = claim.metadata.owner_references
    others = [one for one in references if not _names(one, stateful_set) and not _names(one, pod)]
    if has_unexpected_controller(claim, stateful_set, pod):
        return others
    return others + [owner_reference(owner) for owner in _owners(stateful_set, pod)]


def _owners(stateful_set: StatefulSet, pod: Pod) -> list[Resource]:
    """Return who controls the claim by the policy: the pod, the StatefulSet, or nobody."""
    if deletes_when_scaled(stateful_set) and not is_in_range(stateful_set, pod):
        return [pod]
    return [stateful_set] if _deletes_when_deleted(stateful_set) else []


def _deletes_when_deleted(stateful_set: StatefulSet) -> bool:
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    return policy is not None and policy.when_deleted == _DELETE


def _names(reference: OwnerReference, owner: Resource) -> bool:
    """Report whether a reference has the kind and name of an object, whatever its uid."""
    kind = owner.__kind__
    return (reference.api_version, reference.kind, reference.name) == (kind.api_version, kind.kind, owner.name)
