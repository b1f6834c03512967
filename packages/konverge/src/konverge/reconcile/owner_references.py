"""Preparation of a desired object for its apply: its namespace, and its owner reference.

The garbage collector deletes a child whose owner it does not find. It looks for a namespaced owner in the namespace of
the child, and for the owner of a cluster-scoped child among cluster-scoped objects only. An owner anywhere else counts
as gone. So such references are rejected here, before they delete an object.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

from konverge.objects import AnyObject, Key, Kind, OwnerReference, Resource, Unstructured, replace, to_wire

__all__ = [
    "controller_reference",
    "has_owner_of_same_name",
    "other_controller",
    "references_of",
    "with_namespace_and_owner",
]

R = TypeVar("R", bound=AnyObject)


def with_namespace_and_owner(desired: R, kind: Kind, *, owner: AnyObject | None, namespace: str) -> R:
    """Return a copy of `desired` with its namespace and its owner reference.

    The default namespace is that of the owner or, without an owner, `namespace`.

    Raises: ValueError for an object that was read from the server, for one without a name, and when the owner cannot
    own it.
    """
    _check(desired, kind)
    key = Key(_namespace(desired, kind, owner, namespace), desired.name)
    if owner is None:
        return _copy_with(desired, key.namespace, [])
    if owner.namespace and not kind.namespaced:
        raise ValueError(
            f"{owner.kind} {owner.key} cannot own {kind.kind} {key}: a namespaced object owns no cluster-scoped"
            " one, the garbage collector would delete it (apply it with owned=False, and delete it in finalize)"
        )
    if owner.namespace and owner.namespace != key.namespace:
        raise ValueError(
            f"{owner.kind} {owner.key} cannot own {kind.kind} {key}: they are in different namespaces, the garbage"
            " collector would delete it (apply it with owned=False, and delete it in finalize)"
        )
    return _copy_with(desired, key.namespace, _owners(desired, key, owner))


def other_controller(references: list[OwnerReference], owner: AnyObject) -> OwnerReference | None:
    """Return the reference to another controller than the owner, or None.

    An earlier object with the kind and name of the owner does not count: it is gone, and its children are adopted.
    """
    for one in references:
        if one.controller and one.uid != owner.uid and (one.kind, one.name) != (owner.kind, owner.name):
            return one
    return None


def has_owner_of_same_name(references: list[OwnerReference], owner: AnyObject) -> bool:
    """Report whether the controller is an earlier or later object with the kind and name of the owner."""
    return bool(references) and any(
        one.controller and one.uid != owner.uid and (one.kind, one.name) == (owner.kind, owner.name)
        for one in references
    )


def controller_reference(owner: AnyObject) -> OwnerReference:
    """Return the owner reference that makes `owner` the controller of an object.

    Raises: ValueError for an owner that was not read from the server.
    """
    if not owner.uid or not owner.name:
        raise ValueError(
            f"{owner.kind} {owner.key} has no uid: an owner must be an object that was read from the server"
        )
    return _controller_reference(owner.api_version, owner.kind, owner.name, owner.uid)


@lru_cache(maxsize=64)  # an owner mostly has several children
def _controller_reference(api_version: str, kind: str, name: str, uid: str) -> OwnerReference:
    """Return a reference that several objects share, so none of them is passed on: they are encoded and sent."""
    return OwnerReference(
        api_version=api_version, kind=kind, name=name, uid=uid, controller=True, block_owner_deletion=True
    )


def _check(desired: AnyObject, kind: Kind) -> None:
    if not desired.name:
        raise ValueError(f"apply {kind.kind}: it has no name (the server generates names only on create)")
    if desired.resource_version:
        raise ValueError(
            f"apply {kind.kind} {desired.key}: this object was read from the server, and applying it would take over"
            " all its fields (apply a new object with only your fields, or edit this one with client.update)"
        )


def _namespace(desired: AnyObject, kind: Kind, owner: AnyObject | None, default: str) -> str:
    if not kind.namespaced:
        return ""
    if desired.namespace or owner is None:
        return desired.namespace or default
    if not owner.namespace:
        raise ValueError(
            f"apply {kind.kind} {desired.name}: its owner {owner.kind} {owner.key} is cluster-scoped, so its"
            " namespace is not known (set metadata.namespace)"
        )
    return owner.namespace


def _owners(desired: AnyObject, key: Key, owner: AnyObject) -> list[OwnerReference]:
    found = references_of(desired)
    if not found:
        return [controller_reference(owner)]
    others = [one for one in found if one.uid != owner.uid]
    controller = next((one for one in others if one.controller), None)
    if controller is not None:
        raise ValueError(
            f"{owner.kind} {owner.key} cannot own {desired.kind} {key}: its owner references name"
            f" {controller.kind} {controller.name} as its controller, and an object has only one (leave that"
            " reference out, or apply with owned=False)"
        )
    return [*others, controller_reference(owner)]


def references_of(obj: AnyObject) -> list[OwnerReference]:
    """Return the owner references of an object."""
    if isinstance(obj, Resource):
        return list(obj.metadata.owner_references)
    return msgspec.convert(obj.metadata.get("ownerReferences") or [], list[OwnerReference])


def _copy_with(desired: R, namespace: str, owners: list[OwnerReference]) -> R:
    changes: dict[str, Any] = {"namespace": namespace} if namespace else {}
    if isinstance(desired, Resource):
        if owners:
            changes["owner_references"] = owners
        copy = desired.__copy__()
        copy.metadata = replace(desired.metadata, **changes)
        return cast(R, copy)
    if owners:
        changes["ownerReferences"] = to_wire(owners)
    return cast(R, Unstructured({**desired, "metadata": {**desired.metadata, **changes}}))
