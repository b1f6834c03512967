"""Remove fields that a manager applied before and no longer applies.

A field is removed only if it was in the manager's last set, is not in its new set, and no other manager owns it:

1. Remove everything in the last set from the merged object, including the structs above the fields.
2. Restore the fields that any manager owns now, including this manager's new set, version by version.
3. Of the fields that are still removed, restore those that were not in the last set: unowned fields inside a removed
   item.
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
    """Return the merged object without the fields that only `last`, the manager's previous set, owned."""
    if last is None or not last.fields or last.version not in endpoint.topologies:
        return merged
    owned = _owned_by_version(managers)
    if not difference(last.fields, owned.get(last.version, {})):
        return merged
    node = endpoint.root(last.version)
    unpruned = endpoint.at(merged, last.version)
    pruned = _remove(node, unpruned, named_members(last.fields, node))
    for version in sorted(owned, key=lambda known: known != last.version):
        if version in endpoint.topologies:
            pruned = _put_back(endpoint, version, (unpruned, pruned), owned[version])
    pruned = endpoint.at(pruned, last.version)
    removed = difference(_named_fields(node, unpruned), _named_fields(node, pruned))
    result = _remove(node, unpruned, intersection(removed, named_members(last.fields, node)))
    return endpoint.at(result, endpoint.api_version)


def _owned_by_version(managers: Managers) -> dict[str, FieldSet]:
    owned: dict[str, FieldSet] = {}
    for one in managers.values():
        owned[one.version] = union(owned.get(one.version, {}), one.fields)
    return owned


def _put_back(
    endpoint: Endpoint, version: str, objects: tuple[dict[str, Any], dict[str, Any]], owned: FieldSet
) -> dict[str, Any]:
    node = endpoint.root(version)
    unpruned, pruned = (endpoint.at(obj, version) for obj in objects)
    retained = union(_named_fields(node, pruned), named_members(owned, node))
    return _remove(node, unpruned, difference(_named_fields(node, unpruned), retained))


def _named_fields(node: Node, obj: dict[str, Any]) -> FieldSet:
    return named_members(fields_of(node, obj), node)


def _remove(node: Node, obj: dict[str, Any], fields: FieldSet) -> dict[str, Any]:
    return remove(node, obj, fields) or {}
