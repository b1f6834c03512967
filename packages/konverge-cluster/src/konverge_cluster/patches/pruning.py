"""Take out what a manager applied before and no longer applies.

Something goes only when it was in the manager's last set, is not in its new one, and nobody else owns it:

1. Take everything of the last set out of the merged object, structs on the way included.
2. Put back what anybody owns now, this manager's new set included, version by version.
3. Of what is still out, put back all that was not in the last set itself: unowned fields inside an item that went.
"""

from __future__ import annotations

from typing import Any

from konverge_cluster.patches.comparison import fields_of
from konverge_cluster.patches.endpoints import Endpoint
from konverge_cluster.patches.field_sets import FieldSet, difference, intersection, named_members, union
from konverge_cluster.patches.managers import Managers, Owned
from konverge_cluster.patches.merging import remove
from konverge_cluster.patches.topology import Node

__all__ = ["prune"]


def prune(endpoint: Endpoint, merged: dict[str, Any], managers: Managers, last: Owned | None) -> dict[str, Any]:
    """Give the merged object without what only `last` (the manager's earlier set) had put there."""
    if last is None or not last.fields or last.version not in endpoint.topologies:
        return merged
    owned = _owned_by_version(managers)
    if not difference(last.fields, owned.get(last.version, {})):
        return merged
    node = endpoint.root(last.version)
    whole = endpoint.at(merged, last.version)
    pruned = _remove(node, whole, named_members(last.fields, node))
    for version in sorted(owned, key=lambda known: known != last.version):
        if version in endpoint.topologies:
            pruned = _put_back(endpoint, version, (whole, pruned), owned[version])
    pruned = endpoint.at(pruned, last.version)
    gone = difference(_named_fields(node, whole), _named_fields(node, pruned))
    kept = _remove(node, whole, intersection(gone, named_members(last.fields, node)))
    return endpoint.at(kept, endpoint.api_version)


def _owned_by_version(managers: Managers) -> dict[str, FieldSet]:
    owned: dict[str, FieldSet] = {}
    for one in managers.values():
        owned[one.version] = union(owned.get(one.version, {}), one.fields)
    return owned


def _put_back(
    endpoint: Endpoint, version: str, objects: tuple[dict[str, Any], dict[str, Any]], owned: FieldSet
) -> dict[str, Any]:
    node = endpoint.root(version)
    whole, pruned = (endpoint.at(obj, version) for obj in objects)
    stay = union(_named_fields(node, pruned), named_members(owned, node))
    return _remove(node, whole, difference(_named_fields(node, whole), stay))


def _named_fields(node: Node, obj: dict[str, Any]) -> FieldSet:
    return named_members(fields_of(node, obj), node)


def _remove(node: Node, obj: dict[str, Any], fields: FieldSet) -> dict[str, Any]:
    return remove(node, obj, fields) or {}
