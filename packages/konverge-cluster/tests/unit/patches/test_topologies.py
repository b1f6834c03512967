"""Topologies from schemas: granular and atomic values, and the content of a new struct."""

from __future__ import annotations

from typing import Any

import pytest

from konverge_cluster.patches import OPEN_CUSTOM_RESOURCE, Schemas, Topology, custom_resource_topology
from konverge_cluster.patches.comparison import compare, fields_of
from konverge_cluster.patches.topology import DEDUCED, MappingType, Node, SequenceType
from konverge_cluster.patches.validation import ValidationError, validate


def node_of(schema: dict[str, Any], **named: Any) -> Node:
    return Schemas(named).node(schema)


def mapping_of(node: Node) -> MappingType:
    assert node.mapping is not None
    return node.mapping


def sequence_of(node: Node) -> SequenceType:
    assert node.sequence is not None
    return node.sequence


@pytest.mark.parametrize(
    ("desired", "atomic", "keys"),
    [
        ({}, True, ()),
        ({"x-kubernetes-list-type": "atomic"}, True, ()),
        ({"x-kubernetes-list-type": "set"}, False, ()),
        ({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]}, False, ("a", "b")),
        ({"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "n"}, False, ("n",)),
        ({"x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "n"}, False, ("n",)),
        ({"x-kubernetes-patch-strategy": "merge"}, False, ()),
        ({"x-kubernetes-patch-strategy": "retainKeys"}, True, ()),
        ({"x-kubernetes-list-type": "atomic", "x-kubernetes-patch-strategy": "merge"}, True, ()),
    ],
)
def test_the_schema_determines_the_list_type(desired: dict[str, Any], atomic: bool, keys: tuple[str, ...]) -> None:
    created = sequence_of(node_of({"type": "array", "items": {"type": "string"}, **desired}))
    assert (created.atomic, created.keys) == (atomic, keys)


def test_a_map_type_beside_a_reference_overrides_that_of_the_type() -> None:
    named = {"T": {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-map-type": "atomic"}}
    assert mapping_of(node_of({"$ref": "#/components/schemas/T"}, **named)).atomic
    granular = {"allOf": [{"$ref": "#/components/schemas/T"}], "x-kubernetes-map-type": "granular"}
    assert not mapping_of(node_of(granular, **named)).atomic


@pytest.mark.parametrize(
    ("schema", "scalar"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "byte"}, "string"),
        ({"type": "string", "format": "date-time"}, "untyped"),
        ({"type": "integer"}, "numeric"),
        ({"type": "number"}, "numeric"),
        ({"type": "boolean"}, "boolean"),
        ({"x-kubernetes-int-or-string": True}, "untyped"),
        ({"$ref": "io.k8s.apimachinery.pkg.api.resource.Quantity"}, "untyped"),
    ],
)
def test_the_schema_determines_the_scalar_type(schema: dict[str, Any], scalar: str) -> None:
    assert node_of(schema).scalar == scalar


def test_unknown_fields_are_allowed_where_the_schema_preserves_them() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "object", "properties": {"c": {"type": "string"}}}}}
    closed, opened = node_of(inner), node_of({**inner, "x-kubernetes-preserve-unknown-fields": True})
    with pytest.raises(ValidationError, match="field not declared in schema"):
        validate(closed, {"b": {"x": 1}})
    validate(opened, {"a": 1, "b": {"x": 1}})


def test_an_object_without_properties_is_open() -> None:
    assert mapping_of(node_of({"type": "object"})).element is DEDUCED
    assert mapping_of(node_of({"type": "object", "additionalProperties": True})).element is DEDUCED
    assert mapping_of(node_of({"type": "object", "additionalProperties": False})).element is None


def test_a_type_may_contain_itself() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "Tree"}, "value": {"type": "string"}}}
    schemas = Schemas({"Tree": tree})
    assert fields_of(schemas.named("Tree"), {"left": {"left": {"value": "x"}}}) == {
        "f:left": {"f:left": {"f:value": {}}}
    }


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(KeyError, match="Nothing"):
        Schemas({}).topology("io.k8s.Nothing")


def test_a_new_struct_has_the_fields_that_go_always_writes(schemas: Schemas) -> None:
    assert schemas.topology("io.k8s.api.core.v1.ConfigMap").zero == {
        "metadata": {"creationTimestamp": None, "deletionTimestamp": None}
    }
    zero = schemas.topology("io.k8s.api.apps.v1.Deployment").zero
    assert zero["spec"]["selector"] is None
    assert zero["spec"]["template"]["spec"]["containers"] is None
    assert "replicas" not in zero["spec"]
    event = schemas.topology("io.k8s.api.core.v1.Event").zero
    assert event["reportingComponent"] == ""
    assert event["firstTimestamp"] is None


def test_a_custom_resource_starts_from_nothing(widget_topology: Topology) -> None:
    assert widget_topology.zero == {}


def test_metadata_and_embedded_resources_of_custom_resources_are_typed(schemas: Schemas) -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    topology = custom_resource_topology({"type": "object", "properties": {"e": embedded}}, schemas)
    validate(topology.root, {"metadata": {"finalizers": ["a"]}, "e": {"metadata": {"name": "x"}, "more": 1}})
    with pytest.raises(ValidationError, match=r"\.e\.metadata\.bogus: field not declared in schema"):
        validate(topology.root, {"e": {"metadata": {"bogus": 1}}})


def test_without_a_schema_maps_are_granular_and_lists_atomic() -> None:
    root = OPEN_CUSTOM_RESOURCE.root
    changed, removed = compare(root, {"a": {"b": 1, "c": [1]}}, {"a": {"b": 1, "c": [2], "d": {"e": 1}}})
    assert changed == {"f:a": {"f:c": {}, "f:d": {".": {}, "f:e": {}}}}
    assert removed == {}
