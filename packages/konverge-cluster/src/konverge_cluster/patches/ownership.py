"""Changes of field ownership when an object changes.

Rules:

1. Every manager loses fields that are removed.
2. A manager that changes a field becomes its owner; other owners of the field are in conflict. An Update takes the
   field from them silently, an Apply only with force.
3. For an entry in another version the change is computed in that version. For a built-in kind, entries of unknown
   versions are dropped; for a custom resource they are an error.
4. Before that, if the schema made a value atomic since, a manager that owns fields inside it owns the whole value.
5. An entry without fields is dropped.
"""

from __future__ import annotations

from typing import Any

from konverge_cluster.patches.comparison import compare
from konverge_cluster.patches.endpoints import UNOWNED_FIELDS, Endpoint
from konverge_cluster.patches.field_sets import FieldSet, children_of, difference, intersection, is_member, subtract
from konverge_cluster.patches.managers import Identity, Managers
from konverge_cluster.patches.topology import Node
from konverge_cluster.patches.validation import ValidationError

__all__ = ["Change", "reconcile_with_schema", "strip"]


class Change:
    """One change of an object, computed for every version in which managers own fields."""

    def __init__(self, endpoint: Endpoint, old: dict[str, Any], new: dict[str, Any]) -> None:
        self._endpoint = endpoint
        self._old = old
        self._new = new
        self._by_version: dict[str, tuple[FieldSet, FieldSet]] = {}

    def at(self, version: str) -> tuple[FieldSet, FieldSet]:
        """Return (changed, removed) in a served version, without the fields that the endpoint resets."""
        if version not in self._by_version:
            endpoint = self._endpoint
            old, new = endpoint.at(self._old, version), endpoint.at(self._new, version)
            changed, removed = compare(endpoint.root(version), old, new)
            reset = endpoint.reset.get(version, {})
            self._by_version[version] = subtract(changed, reset), subtract(removed, reset)
        return self._by_version[version]

    def conflicts(self, managers: Managers, *, exclude: Identity | None = None) -> dict[Identity, FieldSet]:
        """Return the changed fields that other managers own."""
        found = {
            identity: intersection(owned.fields, self.at(owned.version)[0])
            for identity, owned in managers.items()
            if identity != exclude
        }
        return {identity: fields for identity, fields in found.items() if fields}

    def managers_after(self, managers: Managers, *, exclude: Identity | None = None) -> Managers:
        """Return what every manager owns after the change; the manager `exclude` keeps its fields."""
        result: Managers = {}
        for identity, owned in managers.items():
            fields = owned.fields
            if identity != exclude:
                changed, removed = self.at(owned.version)
                fields = _subtract(_subtract(fields, changed), removed)
            if fields:
                result[identity] = owned.with_fields(fields)
        return result


def _subtract(fields: FieldSet, removed: FieldSet) -> FieldSet:
    """Subtract fields from a set; return the set itself when it has none of them."""
    return difference(fields, removed) if removed and intersection(fields, removed) else fields


def strip(fields: FieldSet) -> FieldSet:
    """Remove the fields that no manager owns: identity, and fields that the server sets."""
    return difference(fields, UNOWNED_FIELDS)


def reconcile_with_schema(endpoint: Endpoint, managers: Managers, live: dict[str, Any]) -> Managers:
    """Drop entries of unknown versions of a built-in kind, and widen ownership inside values that became atomic.

    Raises: ValidationError when the live object does not match the schema of a version, or when a custom resource has
    no
        such version.
    """
    for version in {owned.version for owned in managers.values()}:
        if version in endpoint.topologies:
            endpoint.at(live, version)
        elif not endpoint.topology.structured:
            raise ValidationError(f"request to convert CR to an invalid group/version: {version}")
    return {
        identity: owned.with_fields(_widened(endpoint.root(owned.version), owned.fields))
        for identity, owned in managers.items()
        if owned.version in endpoint.topologies
    }


def _widened(node: Node, fields: FieldSet) -> FieldSet:
    """Replace fields inside atomic values by the whole values; return the same set when there are none."""
    result: FieldSet = {}
    for element, entry in fields.items():
        inner = children_of(entry) if entry else None
        child = _child(node, element) if inner else None
        if inner and child is not None and (widened := _widened_entry(child, entry, inner)) is not entry:
            result[element] = widened
    return {**fields, **result} if result else fields


def _widened_entry(node: Node, entry: FieldSet, inner: FieldSet) -> FieldSet:
    container = node.mapping or (None if node.scalar else node.sequence)
    if container is None or (node.mapping is not None and node.mapping.is_open):
        return entry
    if container.atomic:
        return {}
    widened = _widened(node, inner)
    if widened is inner:
        return entry
    return {".": {}, **widened} if is_member(entry) else widened


def _child(node: Node, element: str) -> Node | None:
    if node.mapping is not None:
        named = node.mapping.fields.get(element[2:]) if element[0] == "f" else None
        return named.node if named is not None else node.mapping.element
    return node.sequence.element if node.sequence is not None and not node.scalar else None
