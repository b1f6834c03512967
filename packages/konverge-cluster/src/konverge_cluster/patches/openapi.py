"""Topologies from schemas: the OpenAPI v3 documents of built-in kinds, and the structural schemas of CRDs.

Rules, as the real server reads them:

1. `x-kubernetes-list-type` decides on lists; without it a patch strategy with `merge` makes a list granular (by its
   merge key, or a set); all others are atomic. `x-kubernetes-map-type: atomic` makes maps and structs atomic.
2. A reference may stand alone or as the only `allOf`; a map type beside it overrides that of the type.
3. Without a type anything goes. An object without properties is an open map: its values are deduced.
4. `x-kubernetes-preserve-unknown-fields` lets unknown fields in, here and in all that is written below.
5. Of the Go structs behind a built-in kind the document tells enough: a default of `{}` marks an embedded struct, an
   empty scalar as default marks one that is always written, and other required fields, as well as times, are null in a
   fresh struct.
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
    """The `components.schemas` of one or more OpenAPI documents, and the nodes made of them so far."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._nodes: dict[tuple[str, bool | None], Node] = {}

    def topology(self, name: str) -> Topology:
        """Give the topology of a built-in kind by the name of its schema ("io.k8s.api.apps.v1.Deployment")."""
        if name not in self._schemas:
            raise KeyError(f"no schema {name!r} in these documents")
        return Topology(self.named(name), structured=True)

    def named(self, name: str, *, atomic: bool | None = None) -> Node:
        """Give the node of a named schema, its map type overridden where `atomic` says so."""
        key = (name, atomic)
        if key not in self._nodes:
            self._nodes[key] = _SPECIAL.get(name) or Node(lambda: self._forms_of_named(name, atomic))
        return self._nodes[key]

    def node(self, schema: Mapping[str, Any], *, open_fields: bool = False) -> Node:
        """Give the node of a schema that stands inside another one."""
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
        made = Field(node, default, merge_key=schema.get("x-kubernetes-patch-merge-key", ""))
        made.strategies = tuple(strategy.split(",")) if strategy else ()
        if default == {} and isinstance(default, dict):
            made.zero = lambda: zero_of(node)
        elif default in ("", 0, False) or required or _reference(schema) in _TIMES:
            made.zero = lambda: default
        return made

    def _element(self, schema: Mapping[str, Any], properties: Mapping[str, Any], open_fields: bool) -> Node | None:
        more = schema.get("additionalProperties")
        if isinstance(more, Mapping):
            return self.node(more, open_fields=open_fields)
        if more is None:
            return DEDUCED if open_fields or not properties else None
        return DEDUCED if more else None

    def _sequence(self, schema: Mapping[str, Any], open_fields: bool) -> SequenceType:
        items = schema.get("items")
        element = self.node(items, open_fields=open_fields) if items is not None else UNTYPED
        return SequenceType(element, *_list_type(schema))


def custom_resource_topology(schema: Mapping[str, Any], schemas: Schemas) -> Topology:
    """Give the topology of a custom resource from the `openAPIV3Schema` of one version.

    `schemas` lends the schema of metadata: `components.schemas` of any built-in group has it.
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
    every = schema.get("allOf")
    if reference is None and every is not None and len(every) == 1:
        reference = every[0].get("$ref")
    return None if reference is None else str(reference).rpartition("/")[2]


def _map_type(schema: Mapping[str, Any]) -> bool | None:
    """Tell whether the schema makes maps atomic (True) or granular (False), None when it says nothing."""
    said = schema.get("x-kubernetes-map-type")
    return None if said is None else said == "atomic"


def _list_type(schema: Mapping[str, Any]) -> tuple[bool, tuple[str, ...]]:
    """Read (atomic, keys)."""
    said = schema.get("x-kubernetes-list-type")
    if said is not None:
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if said == "map" else ()
        return said not in ("set", "map"), keys
    if schema.get("x-kubernetes-patch-strategy") in ("merge", "merge,retainKeys"):
        key = schema.get("x-kubernetes-patch-merge-key")
        return False, (key,) if key is not None else ()
    return True, ()
