"""From what a cache holds of an object to what garbage collection sees of it, and back to what the server is told."""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.cache import Entry
from konverge.objects import Key, Kind, Unstructured
from konverge_cluster.garbage.graph import Owning, Thing

__all__ = ["named", "owner_wire", "thing_of", "thing_of_wire"]


class _Owner(msgspec.Struct):
    apiVersion: str = ""  # noqa: N815
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    blockOwnerDeletion: bool | None = None  # noqa: N815


class _Metadata(msgspec.Struct):
    name: str
    uid: str
    namespace: str = ""
    resourceVersion: str = ""  # noqa: N815
    deletionTimestamp: str | None = None  # noqa: N815
    finalizers: list[str] | None = None
    ownerReferences: list[_Owner] | None = None  # noqa: N815


class _Object(msgspec.Struct):
    metadata: _Metadata


def thing_of(kind: Kind, entry: Entry) -> Thing:
    """See an entry of a cache as a thing."""
    return _thing(kind, entry.read(_Object).metadata)


def thing_of_wire(kind: Kind, obj: dict[str, Any]) -> Thing:
    """See an object as the server gave it as a thing."""
    return _thing(kind, msgspec.convert(obj, _Object).metadata)


def _thing(kind: Kind, metadata: _Metadata) -> Thing:
    return Thing(
        uid=metadata.uid,
        kind=kind,
        key=Key(metadata.namespace, metadata.name),
        version=metadata.resourceVersion,
        owners=tuple(_owning(one) for one in metadata.ownerReferences or ()),
        finalizers=tuple(metadata.finalizers or ()),
        deleting=metadata.deletionTimestamp is not None,
    )


def _owning(owner: _Owner) -> Owning:
    return Owning(owner.apiVersion, owner.kind, owner.name, owner.uid, owner.controller, owner.blockOwnerDeletion)


def owner_wire(owner: Owning) -> dict[str, Any]:
    """Write a reference as it stands in an object."""
    wire: dict[str, Any] = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": owner.controller,
        "blockOwnerDeletion": owner.blocks,
    }
    return {name: value for name, value in wire.items() if value is not None}


def named(thing: Thing) -> Unstructured:
    """Give an object that names a thing, at the version at which it was seen."""
    metadata = {"name": thing.key.name, "uid": thing.uid, "resourceVersion": thing.version}
    if thing.key.namespace:
        metadata["namespace"] = thing.key.namespace
    return Unstructured({"apiVersion": thing.kind.api_version, "kind": thing.kind.kind, "metadata": metadata})
