"""What is wanted, made ready to be applied: in its namespace, and with the object that owns it.

The garbage collector deletes a child whose owner it cannot find. It looks for a namespaced owner in the namespace of
the child, and for the owner of a cluster-scoped child among cluster-scoped objects only: an owner anywhere else counts
as gone. So such references are refused here, before they delete something.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

from konverge.objects import AnyObject, Key, Kind, OwnerReference, Resource, Unstructured, to_wire

__all__ = ["controller_reference", "made_ready", "other_controller"]

R = TypeVar("R", bound=AnyObject)


def made_ready(desired: R, kind: Kind, *, owner: AnyObject | None, namespace: str) -> R:
    """Give what is wanted as it is to be applied; `desired` itself stays as it is.

    Without a namespace it goes to that of its owner or, where it has no owner, to `namespace`.

    Raises: ValueError for what was read instead of made, for one without a name, and where the owner cannot own it.
    """
    _check(desired, kind)
    key = Key(_namespace(desired, kind, owner, namespace), desired.name)
    if owner is None:
        return _with(desired, key.namespace, [])
    if owner.namespace and not kind.namespaced:
        raise ValueError(
            f"{owner.kind} {owner.key} cannot own {kind.kind} {key}: an object in a namespace owns no cluster-scoped"
            " one, the garbage collector would delete it (apply it with owned=False, and delete it in finalize)"
        )
    if owner.namespace and owner.namespace != key.namespace:
        raise ValueError(
            f"{owner.kind} {owner.key} cannot own {kind.kind} {key}: they are in different namespaces, the garbage"
            " collector would delete it (apply it with owned=False, and delete it in finalize)"
        )
    return _with(desired, key.namespace, _owners(desired, key, owner))


def other_controller(references: list[OwnerReference], owner: AnyObject) -> OwnerReference | None:
    """Give the controller of an object when it is another one; an earlier object of the owner's name does not count.

    What an earlier one left is taken over: it would go with its owner, which is gone.
    """
    for one in references:
        if one.controller and one.uid != owner.uid and (one.kind, one.name) != (owner.kind, owner.name):
            return one
    return None


def controller_reference(owner: AnyObject) -> OwnerReference:
    """Give the reference that makes an object the child of this one, as its controller.

    Raises: ValueError for an owner that was not read from the server.
    """
    if not owner.uid or not owner.name:
        raise ValueError(f"{owner.kind} {owner.key} has no uid: an owner is an object that was read from the server")
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
        block_owner_deletion=True,
    )


def _check(desired: AnyObject, kind: Kind) -> None:
    if not desired.name:
        raise ValueError(f"apply {kind.kind}: it has no name (the server makes up names only when it creates)")
    if desired.resource_version:
        raise ValueError(
            f"apply {kind.kind} {desired.key}: this object was read from the server, and applying it would take every"
            " field of it (make a new one with just the fields that are yours, or edit this one with client.update)"
        )


def _namespace(desired: AnyObject, kind: Kind, owner: AnyObject | None, default: str) -> str:
    if not kind.namespaced:
        return ""
    if desired.namespace or owner is None:
        return desired.namespace or default
    if not owner.namespace:
        raise ValueError(
            f"apply {kind.kind} {desired.name}: its owner {owner.kind} {owner.key} is cluster-scoped, so say in which"
            " namespace it shall be (metadata.namespace)"
        )
    return owner.namespace


def _owners(desired: AnyObject, key: Key, owner: AnyObject) -> list[OwnerReference]:
    others = [one for one in _references(desired) if one.uid != owner.uid]
    rival = next((one for one in others if one.controller), None)
    if rival is not None:
        raise ValueError(
            f"{owner.kind} {owner.key} cannot own {desired.kind} {key}: it names {rival.kind} {rival.name} as its"
            " controller already, and an object has one (leave that reference out, or apply with owned=False)"
        )
    return [*others, controller_reference(owner)]


def _references(desired: AnyObject) -> list[OwnerReference]:
    if isinstance(desired, Resource):
        return list(desired.metadata.owner_references)
    return msgspec.convert(desired.metadata.get("ownerReferences") or [], list[OwnerReference])


def _with(desired: R, namespace: str, owners: list[OwnerReference]) -> R:
    changes: dict[str, Any] = {"namespace": namespace} if namespace else {}
    if isinstance(desired, Resource):
        if owners:
            changes["owner_references"] = owners
        twin = desired.__copy__()
        twin.metadata = msgspec.structs.replace(desired.metadata, **changes)
        return cast(R, twin)
    if owners:
        changes["ownerReferences"] = to_wire(owners)
    return cast(R, Unstructured({**desired, "metadata": {**desired.metadata, **changes}}))
