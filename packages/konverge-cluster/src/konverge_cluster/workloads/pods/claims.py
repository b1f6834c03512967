"""Whose objects are these: which an owner keeps, adopts or lets go, by its selector and the controller reference.

An object has at most one controller. One that another has is left alone; one without is adopted when the selector picks
it; one of ours that the selector no longer picks is let go. An owner on its way out neither adopts nor lets go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from konverge.objects import LabelSelector, OwnerReference, Resource, to_wire
from konverge_cluster.workloads.pods.facts import is_being_deleted

__all__ = ["Claims", "adoption", "claim", "controller_of", "owner_reference", "release"]

T = TypeVar("T", bound=Resource)


@dataclass(frozen=True)
class Claims(Generic[T]):
    """What an owner has to do with the objects it looked at; all others are none of its business."""

    kept: list[T] = field(default_factory=list)
    adopted: list[T] = field(default_factory=list)
    released: list[T] = field(default_factory=list)


def claim(owner: Resource, selector: LabelSelector, objects: Iterable[T]) -> Claims[T]:
    """Decide for each object of the owner's namespace whose it is; nothing is written."""
    claims: Claims[T] = Claims()
    leaving = is_being_deleted(owner)
    for obj in objects:
        reference = controller_of(obj)
        picked = selector.matches(obj.metadata.labels)
        if reference is not None:
            if reference.uid == owner.uid and picked:
                claims.kept.append(obj)
            elif reference.uid == owner.uid and not leaving:
                claims.released.append(obj)
        elif picked and not leaving and not is_being_deleted(obj):
            claims.adopted.append(obj)
    return claims


def controller_of(obj: Resource) -> OwnerReference | None:
    """Give the reference to the controller of an object."""
    return next((reference for reference in obj.metadata.owner_references if reference.controller), None)


def owner_reference(owner: Resource) -> OwnerReference:
    """Make the reference by which an owner controls what it makes."""
    return OwnerReference(
        api_version=owner.__kind__.api_version,
        kind=owner.__kind__.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
        block_owner_deletion=True,
    )


def adoption(owner: Resource, obj: Resource, *, finalizers: Iterable[str] = ()) -> dict[str, Any]:
    """Make the strategic merge patch that adopts an object, if it is still that one."""
    metadata: dict[str, Any] = {"ownerReferences": [to_wire(owner_reference(owner))], "uid": obj.uid}
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return {"metadata": metadata}


def release(owner: Resource, obj: Resource, *, finalizers: Iterable[str] = ()) -> dict[str, Any]:
    """Make the strategic merge patch that lets an object go, if it is still that one."""
    metadata: dict[str, Any] = {"uid": obj.uid, "ownerReferences": [{"$patch": "delete", "uid": owner.uid}]}
    if finalizers:
        metadata["$deleteFromPrimitiveList/finalizers"] = list(finalizers)
    return {"metadata": metadata}
