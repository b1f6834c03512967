"""Which objects an owner owns, adopts or releases, by its selector and the controller references.

An object has at most one controller. An object of another controller is left alone; an orphan is adopted if it matches
the selector; an owned object that no longer matches is released. An owner being deleted neither adopts nor releases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from konverge.objects import LabelSelector, OwnerReference, Resource, to_wire
from konverge_cluster.workloads.pods.facts import is_being_deleted

__all__ = ["Claims", "adopt_patch", "claim", "controller_of", "owner_reference", "release_patch"]

T = TypeVar("T", bound=Resource)


@dataclass(frozen=True)
class Claims(Generic[T]):
    """The objects of an owner; all others do not concern it."""

    owned: list[T] = field(default_factory=list)
    to_adopt: list[T] = field(default_factory=list)
    to_release: list[T] = field(default_factory=list)


def claim(
    owner: Resource,
    selector: LabelSelector,
    objects: Iterable[T],
    *,
    is_member: Callable[[T], bool] = lambda _: True,
) -> Claims[T]:
    """Decide for each object of the owner's namespace; nothing is written. An object matches if it also is a member."""
    claims: Claims[T] = Claims()
    deleting = is_being_deleted(owner)
    for obj in objects:
        reference = controller_of(obj)
        matches = selector.matches(obj.metadata.labels) and is_member(obj)
        if reference is not None:
            if reference.uid == owner.uid and matches:
                claims.owned.append(obj)
            elif reference.uid == owner.uid and not deleting:
                claims.to_release.append(obj)
        elif matches and not deleting and not is_being_deleted(obj):
            claims.to_adopt.append(obj)
    return claims


def controller_of(obj: Resource) -> OwnerReference | None:
    """Return the controller reference of an object."""
    return next((reference for reference in obj.metadata.owner_references if reference.controller), None)


def owner_reference(owner: Resource) -> OwnerReference:
    """Return the controller reference to an owner."""
    return OwnerReference(
        api_version=owner.__kind__.api_version,
        kind=owner.__kind__.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
        block_owner_deletion=True,
    )


def adopt_patch(owner: Resource, obj: Resource, *, finalizers: Iterable[str] = ()) -> dict[str, Any]:
    """Return the strategic merge patch that adopts an object, with its uid as precondition."""
    metadata: dict[str, Any] = {"ownerReferences": [to_wire(owner_reference(owner))], "uid": obj.uid}
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return {"metadata": metadata}


def release_patch(owner: Resource, obj: Resource, *, finalizers: Iterable[str] = ()) -> dict[str, Any]:
    """Return the strategic merge patch that releases an object, with its uid as precondition."""
    metadata: dict[str, Any] = {"uid": obj.uid, "ownerReferences": [{"$patch": "delete", "uid": owner.uid}]}
    if finalizers:
        metadata["$deleteFromPrimitiveList/finalizers"] = list(finalizers)
    return {"metadata": metadata}
