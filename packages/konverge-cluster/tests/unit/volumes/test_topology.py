"""Topologies of classes and of new volumes."""

from __future__ import annotations

from typing import Any

from konverge.k8s.core.v1 import Node
from konverge.k8s.storage.v1 import StorageClass
from konverge.objects import from_wire
from konverge_cluster.volumes.topology import affinity_for, allows_node, local_affinity, matching_topology

ZONE = "zone"


def zonal(*zones: list[str]) -> StorageClass:
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": values}]} for values in zones]
    return from_wire(StorageClass, {"metadata": {"name": "z"}, "provisioner": "p", "allowedTopologies": terms})


def node(**labels: str) -> Node:
    return from_wire(Node, {"metadata": {"name": "n1", "labels": labels}})


def values_of(affinity: dict[str, Any]) -> dict[str, list[str]]:
    (term,) = affinity["required"]["nodeSelectorTerms"]
    return {one["key"]: one["values"] for one in term["matchExpressions"]}


def test_a_class_allows_the_nodes_of_its_topologies_and_without_any_all_nodes() -> None:
    storage_class = zonal(["a"], ["b", "c"])

    assert allows_node(storage_class, {ZONE: "c"})
    assert not allows_node(storage_class, {ZONE: "d"})
    assert not allows_node(storage_class, {})
    assert allows_node(zonal(), {})


def test_a_new_volume_is_in_the_zone_of_the_selected_node() -> None:
    storage_class, selected = zonal(["a"], ["b", "c"]), node(zone="c")

    topology = matching_topology(storage_class, selected)

    assert topology is not None
    assert values_of(affinity_for(topology, selected)) == {ZONE: ["c"]}


def test_without_a_selected_node_a_volume_is_in_the_first_topology() -> None:
    topology = matching_topology(zonal(["a"], ["b"]), None)

    assert topology is not None
    assert values_of(affinity_for(topology, None)) == {ZONE: ["a"]}
    assert matching_topology(zonal(), None) is None


def test_a_local_volume_is_bound_to_its_node_by_hostname() -> None:
    assert values_of(local_affinity(node())) == {"kubernetes.io/hostname": ["n1"]}
    assert values_of(local_affinity(node(**{"kubernetes.io/hostname": "h"}))) == {"kubernetes.io/hostname": ["h"]}
