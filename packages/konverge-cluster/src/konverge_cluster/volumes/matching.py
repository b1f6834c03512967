"""Which volume fits a claim: plain functions of both.

A volume whose `claimRef` names the claim is reserved for it. Otherwise a volume must be Available, of the same class,
volume mode and attributes class, at least as large, with all access modes of the claim, and selected by its selector.
The smallest of those fits best; a volume with fewer access modes is preferred to a smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from konverge.k8s.core.v1 import ObjectReference, PersistentVolume, PersistentVolumeClaim
from konverge.k8s.storage.v1 import StorageClass
from konverge.objects import LabelSelector, Quantity
from konverge_cluster.volumes.annotations import BETA_CLASS, BIND_COMPLETED, DEFAULT_CLASS

__all__ = [
    "class_of",
    "default_class",
    "find_volume",
    "find_volume_on_node",
    "has_class",
    "is_bound_to",
    "is_fully_bound",
    "mismatch",
    "reference_to",
    "requested_size",
    "volume_size",
    "waits_for_consumer",
]

NodeMatch: TypeAlias = Callable[[PersistentVolume], bool]

_BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"


def class_of(obj: PersistentVolumeClaim | PersistentVolume) -> str:
    """Return the name of the storage class of a claim or volume, "" for none."""
    if BETA_CLASS in obj.metadata.annotations:
        return obj.metadata.annotations[BETA_CLASS]
    return obj.spec.storage_class_name or ""


def has_class(claim: PersistentVolumeClaim) -> bool:
    """Report whether a claim specifies its class; the class "" counts, and means a volume without a class."""
    return BETA_CLASS in claim.metadata.annotations or claim.spec.storage_class_name is not None


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """Return the default class: the newest of those that are marked, the first by name if several are as new."""
    marked = [one for one in classes if _is_marked_default(one)]
    by_name = sorted(marked, key=lambda one: one.name)
    return max(by_name, key=_creation_seconds, default=None)


def _is_marked_default(one: StorageClass) -> bool:
    return "true" in (one.metadata.annotations.get(name) for name in (DEFAULT_CLASS, _BETA_DEFAULT_CLASS))


def _creation_seconds(one: StorageClass) -> float:
    created = one.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0


def waits_for_consumer(storage_class: StorageClass | None) -> bool:
    """Report whether claims of a class are bound only when a pod that uses them is scheduled."""
    return storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"


def requested_size(claim: PersistentVolumeClaim) -> Quantity:
    """Return the storage that a claim requests."""
    resources = claim.spec.resources
    requests = resources.requests if resources is not None else {}
    return Quantity((requests or {}).get("storage", "0"))


def volume_size(volume: PersistentVolume) -> Quantity:
    """Return the capacity of a volume."""
    return Quantity(volume.spec.capacity.get("storage", "0"))


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    """Return the reference by which a volume is bound to a claim."""
    return ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.resource_version,
    )


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Report whether the `claimRef` of a volume names a claim; one without a uid names any claim of that name."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.namespace, claim.name):
        return False
    return reference.uid in ("", None, claim.uid)


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Report whether the binding of a claim is complete."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def find_volume(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], *, reserved_only: bool = False
) -> PersistentVolume | None:
    """Return the volume that fits a claim best on any node, or None.

    With `reserved_only`, only a volume that is reserved for the claim fits: the scheduler selects from the others.
    """
    groups: dict[frozenset[str], list[PersistentVolume]] = {}
    for volume in volumes:
        modes = frozenset(volume.spec.access_modes)
        if modes >= set(claim.spec.access_modes):
            groups.setdefault(modes, []).append(volume)
    for modes in sorted(groups, key=lambda one: (len(one), sorted(one))):
        found = _best(claim, groups[modes], lambda _: True, reserved_only=reserved_only)
        if found is not None:
            return found
    return None


def find_volume_on_node(
    claim: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume],
    matches_node: NodeMatch,
    *,
    excluded: Collection[str] = (),
) -> PersistentVolume | None:
    """Return the volume that fits a claim best on one node, or None; `excluded` are names of volumes."""
    candidates = [one for one in volumes if one.name not in excluded and _has_modes(one, claim)]
    return _best(claim, candidates, matches_node, reserved_only=False)


def _best(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], matches_node: NodeMatch, *, reserved_only: bool
) -> PersistentVolume | None:
    best: PersistentVolume | None = None
    for volume in sorted(volumes, key=lambda one: one.name):
        if not _can_hold(volume, claim):
            continue
        if is_bound_to(volume, claim):
            return volume if matches_node(volume) else None
        if reserved_only or not (_is_offered(volume, claim) and matches_node(volume)):
            continue
        if best is None or volume_size(volume) < volume_size(best):
            best = volume
    return best


def _can_hold(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    if volume.spec.claim_ref is not None and not is_bound_to(volume, claim):
        return False
    if volume.metadata.deletion_timestamp is not None or volume_size(volume) < requested_size(claim):
        return False
    return _mode(volume) == _mode(claim) and _attributes_class(volume) == _attributes_class(claim)


def _is_offered(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    if volume.status.phase != "Available" or class_of(volume) != class_of(claim):
        return False
    selector = claim.spec.selector
    return selector is None or LabelSelector.from_spec(selector).matches(volume.metadata.labels)


def mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Return why a claim cannot be bound to the volume that it requests, "" if it can."""
    if volume.metadata.deletion_timestamp is not None:
        return f'the volume is marked for deletion "{volume.name}"'
    if volume_size(volume) < requested_size(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if _attributes_class(volume) != _attributes_class(claim):
        return "volumeAttributesClassName does not match"
    if _mode(volume) != _mode(claim):
        return "incompatible volumeMode"
    return "" if _has_modes(volume, claim) else "incompatible accessMode"


def _has_modes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return set(volume.spec.access_modes) >= set(claim.spec.access_modes)


def _mode(obj: PersistentVolumeClaim | PersistentVolume) -> str:
    return obj.spec.volume_mode or "Filesystem"


def _attributes_class(obj: PersistentVolumeClaim | PersistentVolume) -> str:
    return obj.spec.volume_attributes_class_name or ""
