"""Conversion of cache entries and API objects to graph nodes, and back to request bodies."""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.cache import Entry
from konverge.objects import Key, Kind, Unstructured
from konverge_cluster.garbage.graph import GraphNode, OwnerReference

__all__ = ["node_from_entry", "node_from_object", "object_of", "reference_to_dict"]


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


def node_from_entry(kind: Kind, entry: Entry) -> GraphNode:
    """Convert a cache entry to a graph node."""
    return _node(kind, entry.read(_Object).metadata)


def node_from_object(kind: Kind, obj: dict[str, Any]) -> GraphNode:
    """Convert an object from the server to a graph node."""
    return _node(kind, msgspec.convert(obj, _Object).metadata)


def _node(kind: Kind, metadata: _Metadata) -> GraphNode:
    return GraphNode(
        uid=metadata.uid,
        kind=kind,
        key=Key(metadata.namespace, metadata.name),
        version=metadata.resourceVersion,
        owners=tuple(_reference(one) for one in metadata.ownerReferences or ()),
        finalizers=tuple(metadata.finalizers or ()),
        being_deleted=metadata.deletionTimestamp is not None,
    )


def _reference(owner: _Owner) -> OwnerReference:
    return OwnerReference(
        owner.apiVersion, owner.kind, owner.name, owner.uid, owner.controller, owner.blockOwnerDeletion
    )


def reference_to_dict(owner: OwnerReference) -> dict[str, Any]:
    """Convert an owner reference to its form in an object."""
    fields: dict[str, Any] = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": owner.controller,
        "blockOwnerDeletion": owner.block_owner_deletion,
    }
    return {name: value for name, value in fields.items() if value is not None}


def object_of(node: GraphNode) -> Unstructured:
    """Return an object that identifies a node, at the observed resource version."""
    metadata = {"name": node.key.name, "uid": node.uid, "resourceVersion": node.version}
    if node.key.namespace:
        metadata["namespace"] = node.key.namespace
    return Unstructured({"apiVersion": node.kind.api_version, "kind": node.kind.kind, "metadata": metadata})
