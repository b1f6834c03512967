"""How ownership moves when an object changes, whoever changes it.

Rules:

1. Every manager loses what is no longer there.
2. Whoever changes a field takes it: the others that own it are in conflict. An Update takes it silently, an Apply only
   when it is forced.
3. Other versions see the change in their own version. Entries of versions that a built-in kind does not know are
   dropped; a custom resource with such an entry cannot be told at all.
4. Before all that, what a manager owns inside a value that the schema has made atomic since becomes the whole value.
5. An entry that owns nothing is dropped.
"""

from __future__ import annotations

from typing import Any

from konverge_cluster.patches.comparison import compare
from konverge_cluster.patches.endpoints import STRIPPED, Endpoint
from konverge_cluster.patches.field_sets import FieldSet, children_of, difference, intersection, is_member, subtract
from konverge_cluster.patches.managers import Identity, Managers
from konverge_cluster.patches.topology import Node
from konverge_cluster.patches.validation import ValidationError

__all__ = ["Change", "reconcile_with_schema", "strip"]


class Change:
    """One change of an object, seen in every version that managers own fields in."""

    def __init__(self, endpoint: Endpoint, old: dict[str, Any], new: dict[str, Any]) -> None:
        self._endpoint = endpoint
        self._old = old
        self._new = new
        self._seen: dict[str, tuple[FieldSet, FieldSet]] = {}

    def at(self, version: str) -> tuple[FieldSet, FieldSet]:
        """Give (changed, removed) in a served version, without what the endpoint resets."""
        if version not in self._seen:
            endpoint = self._endpoint
            old, new = endpoint.at(self._old, version), endpoint.at(self._new, version)
            changed, removed = compare(endpoint.root(version), old, new)
            reset = endpoint.reset.get(version, {})
            self._seen[version] = subtract(changed, reset), subtract(removed, reset)
        return self._seen[version]

    def conflicts(self, managers: Managers, *, exclude: Identity | None = None) -> dict[Identity, FieldSet]:
        """Give what other managers own of what changed."""
        found = {
            identity: intersection(owned.fields, self.at(owned.version)[0])
            for identity, owned in managers.items()
            if identity != exclude
        }
        return {identity: fields for identity, fields in found.items() if fields}

    def managers_after(self, managers: Managers, *, exclude: Identity | None = None) -> Managers:
        """Give what every manager owns after the change; `but` keeps what it has."""
        settled: Managers = {}
        for identity, owned in managers.items():
            fields = owned.fields
            if identity != exclude:
                changed, removed = self.at(owned.version)
                fields = _without(_without(fields, changed), removed)
            if fields:
                settled[identity] = owned.with_fields(fields)
        return settled


def _without(fields: FieldSet, taken: FieldSet) -> FieldSet:
    """Take fields out of a set; the set itself comes back when it has none of them."""
    return difference(fields, taken) if taken and intersection(fields, taken) else fields


def strip(fields: FieldSet) -> FieldSet:
    """Take out what nobody owns: identity and what the server sets."""
    return difference(fields, STRIPPED)


def reconcile_with_schema(endpoint: Endpoint, managers: Managers, live: dict[str, Any]) -> Managers:
    """Drop entries of versions that a built-in kind does not know, and widen what became atomic.

    Raises: Misfit when the live object does not fit one of the versions, or when a custom resource has no such version.
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
    """Replace what is owned inside atomic values by the values; give the same set when nothing is."""
    made: FieldSet = {}
    for element, entry in fields.items():
        inner = children_of(entry)
        child = _child(node, element) if inner else None
        made[element] = entry if child is None else _widened_entry(child, entry, inner)
    return made if any(made[element] is not fields[element] for element in fields) else fields


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
