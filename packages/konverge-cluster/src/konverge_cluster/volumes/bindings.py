"""Writes of a binding between a claim and a volume: the reference, the volume name, both statuses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from konverge.cache import Entry, Event
from konverge.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus
from konverge.objects import Key, Quantity, replace
from konverge.reconcile import Context
from konverge_cluster.status_writes import controller_client, write_status
from konverge_cluster.volumes.annotations import BIND_COMPLETED, BOUND_BY_CONTROLLER, PRE_RESIZE_CAPACITY
from konverge_cluster.volumes.matching import is_bound_to, reference_to, volume_size

__all__ = [
    "UNBOUND",
    "VOLUMES_BY_CLAIM",
    "ClaimOfVolume",
    "bind",
    "claim_of_volume",
    "claims_of_volume",
    "set_claim_ref",
    "to_claim_of_volume",
    "unbind",
    "update_claim_status",
    "update_phase",
]

VOLUMES_BY_CLAIM: Final = "volumes-by-claim"
"""The name of the index of volumes by the key of their claim, `UNBOUND` for those without one."""
UNBOUND: Final = Key("", "")


@dataclass(frozen=True)
class ClaimOfVolume:
    """The claim that a volume names; `uid` is "" for a volume that is only reserved."""

    key: Key
    uid: str


class _Reference(msgspec.Struct):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _VolumeSpec(msgspec.Struct):
    claimRef: _Reference | None = None  # noqa: N815


class _Volume(msgspec.Struct):
    spec: _VolumeSpec


def claim_of_volume(entry: Entry) -> ClaimOfVolume:
    """Return the claim that a cached volume names; its key is empty for a volume without one."""
    reference = entry.read(_Volume).spec.claimRef or _Reference()
    return ClaimOfVolume(Key(reference.namespace, reference.name), reference.uid)


def to_claim_of_volume(event: Event) -> Iterable[Key]:
    """Map a volume to its claim."""
    return claims_of_volume(event.entry)


def claims_of_volume(entry: Entry) -> list[Key]:
    """Return the key under which a cached volume is found by its claim, `UNBOUND` for a volume without one."""
    return [claim_of_volume(entry).key]


async def bind(volume: PersistentVolume, claim: PersistentVolumeClaim, ctx: Context) -> None:
    """Complete the binding of a volume and a claim; steps that are done are not repeated.

    Raises: Conflict when one of them changed since it was read.
    """
    client = controller_client(ctx)
    if set_claim_ref(volume, claim):
        volume = await client.update(volume)
    volume = await update_phase(volume, "Bound", ctx)
    if claim.spec.volume_name != volume.name:
        claim.spec.volume_name = volume.name
        claim.metadata.annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
    claim.metadata.annotations.setdefault(BIND_COMPLETED, "yes")
    claim = await client.update(claim)
    await update_claim_status(claim, "Bound", volume, ctx)


def set_claim_ref(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Set the reference of a volume to a claim; report whether that changed the volume."""
    reference = volume.spec.claim_ref
    named = is_bound_to(volume, claim)
    if named and reference is not None and reference.uid == claim.uid:
        return False
    if not named:
        volume.metadata.annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
    volume.spec.claim_ref = reference_to(claim)
    return True


async def unbind(volume: PersistentVolume, ctx: Context) -> None:
    """Make a volume available again; one that a user reserved for a claim stays reserved for that name."""
    if volume.metadata.annotations.pop(BOUND_BY_CONTROLLER, None) is not None:
        volume.spec.claim_ref = None
    elif volume.spec.claim_ref is not None:
        volume.spec.claim_ref.uid = None
    volume = await controller_client(ctx).update(volume)
    await update_phase(volume, "Available", ctx)


async def update_phase(volume: PersistentVolume, phase: str, ctx: Context, *, message: str = "") -> PersistentVolume:
    """Write the phase of a volume, and why it has that; return the updated volume."""
    if volume.status.phase == phase:
        return volume
    volume.status.phase = phase
    volume.status.message = message or None
    return await controller_client(ctx).update_status(volume)


async def update_claim_status(
    claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None, ctx: Context
) -> None:
    """Write the phase of a claim, and the access modes and capacity that it has from its volume."""
    status = _status_of(claim.status, phase, volume)
    await write_status(ctx, claim, status)


def _status_of(
    current: PersistentVolumeClaimStatus, phase: str, volume: PersistentVolume | None
) -> PersistentVolumeClaimStatus:
    changes: dict[str, Any] = {"phase": phase}
    if volume is None:
        changes |= {"access_modes": [], "capacity": {}, "current_volume_attributes_class_name": None}
    else:
        changes["access_modes"] = list(volume.spec.access_modes)
        if current.phase != phase:
            # After that the capacity of a claim changes only by expansion.
            before = volume.metadata.annotations.get(PRE_RESIZE_CAPACITY)
            changes["capacity"] = {"storage": before} if before else _capacity_of(current, volume)
        if (current.phase, phase) == ("Pending", "Bound"):
            changes["current_volume_attributes_class_name"] = volume.spec.volume_attributes_class_name
    return replace(current, **changes)


def _capacity_of(current: PersistentVolumeClaimStatus, volume: PersistentVolume) -> dict[str, Any]:
    same = "storage" in current.capacity and volume_size(volume) == Quantity(current.capacity["storage"])
    return dict(current.capacity) if same else dict(volume.spec.capacity)
