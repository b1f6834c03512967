"""Topologies from schemas: the OpenAPI v3 documents of built-in kinds, and the structural schemas of CRDs.

Rules of the real server:

1. `x-kubernetes-list-type` determines the list type. Without it a patch strategy with `merge` makes a list granular (by
   its merge key, or a set); all others are atomic. `x-kubernetes-map-type: atomic` makes maps and structs atomic.
2. A reference may be a `$ref` or the only entry of `allOf`; a map type beside it overrides that of the referenced type.
3. Without a type any value is allowed. An object without properties is an open map: its values are deduced.
4. `x-kubernetes-preserve-unknown-fields` allows unknown fields, in the schema itself and in all schemas nested in it.
5. The document of a built-in kind tells enough of its Go structs: a default of `{}` marks an embedded struct, an empty
   scalar as default marks a field that is always written, and other required fields, and times, are null in a new
   struct.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_cluster.patches.topology import (
    DEDUCED,
    UNTYPED,
    Field,
    MappingType,
    Node,
    SequenceType,
    Topology,
    zero_of,
)

__all__ = ["OPEN_CUSTOM_RESOURCE", "Schemas", "custom_resource_topology"]

OPEN_CUSTOM_RESOURCE = Topology(DEDUCED)
"""A custom resource without a schema."""

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": Node(lambda: ("untyped", None, None)),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": UNTYPED,
}
_TIMES = ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime")
_SCALARS = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}


class Schemas:
    """The `components.schemas` of one or more OpenAPI documents, with the nodes created from them so far."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._nodes: dict[tuple[str, bool | None], Node] = {}

    def topology(self, name: str) -> Topology:
        """Return the topology of a built-in kind by the name of its schema ("io.k8s.api.apps.v1.Deployment")."""
        if name not in self._schemas:
            raise KeyError(f"no schema {name!r} in these documents")
        return Topology(self.named(name), structured=True)

    def named(self, name: str, *, atomic: bool | None = None) -> Node:
        """Return the node of a named schema; `atomic` overrides its map type unless it is None."""
        key = (name, atomic)
        if key not in self._nodes:
            self._nodes[key] = _SPECIAL.get(name) or Node(lambda: self._forms_of_named(name, atomic))
        return self._nodes[key]

    def node(self, schema: Mapping[str, Any], *, open_fields: bool = False) -> Node:
        """Return the node of a schema that is nested in another one."""
        target = _reference(schema)
        if target is None:
            return Node(lambda: self._forms(schema, open_fields, ""))
        return self.named(target, atomic=_map_type(schema))

    def _forms_of_named(self, name: str, atomic: bool | None) -> tuple[str, SequenceType | None, MappingType | None]:
        scalar, sequence, mapping = self._forms(self._schemas.get(name, {}), False, name.rpartition(".")[2])
        if atomic is not None and mapping is not None:
            mapping.atomic = atomic
        elif atomic is not None and sequence is not None:
            sequence.atomic = atomic
        return scalar, sequence, mapping

    def _forms(
        self, schema: Mapping[str, Any], open_fields: bool, name: str
    ) -> tuple[str, SequenceType | None, MappingType | None]:
        open_fields = open_fields or schema.get("x-kubernetes-preserve-unknown-fields") is True
        kind = schema.get("type", "")
        if kind == "object":
            return "", None, self._mapping(schema, open_fields, name)
        if kind == "array":
            return "", self._sequence(schema, open_fields), None
        if not kind:
            return "untyped", self._sequence(schema, open_fields), self._mapping(schema, open_fields, name)
        if kind == "string":
            return ("string" if schema.get("format", "") in ("", "byte") else "untyped"), None, None
        return _SCALARS.get(kind, "untyped"), None, None

    def _mapping(self, schema: Mapping[str, Any], open_fields: bool, name: str) -> MappingType:
        properties = schema.get("properties") or {}
        required = schema.get("required") or ()
        fields = {
            key: self._field(inner, key in required, open_fields) for key, inner in _with_embedded(schema, properties)
        }
        element = self._element(schema, properties, open_fields)
        return MappingType(fields, element, _map_type(schema) is True, name)

    def _field(self, schema: Mapping[str, Any], required: bool, open_fields: bool) -> Field:
        node = self.node(schema, open_fields=open_fields)
        default = schema.get("default")
        strategy = schema.get("x-kubernetes-patch-strategy", "")
        field = Field(node, default, merge_key=schema.get("x-kubernetes-patch-merge-key", ""))
        field.strategies = tuple(strategy.split(",")) if strategy else ()
        if default == {} and isinstance(default, dict):
            field.zero = lambda: zero_of(node)
        elif default in ("", 0, False) or required or _reference(schema) in _TIMES:
            field.zero = lambda: default
        return field

    def _element(self, schema: Mapping[str, Any], properties: Mapping[str, Any], open_fields: bool) -> Node | None:
        additional = schema.get("additionalProperties")
        if isinstance(additional, Mapping):
            return self.node(additional, open_fields=open_fields)
        if additional is None:
            return DEDUCED if open_fields or not properties else None
        return DEDUCED if additional else None

    def _sequence(self, schema: Mapping[str, Any], open_fields: bool) -> SequenceType:
        items = schema.get("items")
        element = self.node(items, open_fields=open_fields) if items is not None else UNTYPED
        return SequenceType(element, *_list_type(schema))


def custom_resource_topology(schema: Mapping[str, Any], schemas: Schemas) -> Topology:
    """Return the topology of a custom resource from the `openAPIV3Schema` of one version.

    `schemas` provides the schema of metadata: `components.schemas` of any built-in group has it.
    """
    properties = {
        **(schema.get("properties") or {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"$ref": _META},
    }
    return Topology(schemas.node({**schema, "properties": properties}))


def _with_embedded(schema: Mapping[str, Any], properties: Mapping[str, Any]) -> list[tuple[str, Any]]:
    if schema.get("x-kubernetes-embedded-resource") is not True:
        return list(properties.items())
    identity = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"$ref": _META}}
    return list({**properties, **identity}.items())


def _reference(schema: Mapping[str, Any]) -> str | None:
    reference = schema.get("$ref")
    all_of = schema.get("allOf")
    if reference is None and all_of is not None and len(all_of) == 1:
        reference = all_of[0].get("$ref")
    return None if reference is None else str(reference).rpartition("/")[2]


def _map_type(schema: Mapping[str, Any]) -> bool | None:
    """Report whether the schema makes maps atomic (True) or granular (False), None when it does not specify it."""
    map_type = schema.get("x-kubernetes-map-type")
    return None if map_type is None else map_type == "atomic"


def _list_type(schema: Mapping[str, Any]) -> tuple[bool, tuple[str, ...]]:
    """Read (atomic, keys)."""
    list_type = schema.get("x-kubernetes-list-type")
    if list_type is not None:
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if list_type == "map" else ()
        return list_type not in ("set", "map"), keys
    if schema.get("x-kubernetes-patch-strategy") in ("merge", "merge,retainKeys"):
        key = schema.get("x-kubernetes-patch-merge-key")
        return False, (key,) if key is not None else ()
    return True, ()
