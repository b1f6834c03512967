"""Topologies of volumes: which nodes a class allows, and the node affinity of a new volume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.k8s.core.v1 import Node, TopologySelectorTerm
from konverge.k8s.storage.v1 import StorageClass

__all__ = ["affinity_for", "allows_node", "local_affinity", "matching_topology"]

_HOSTNAME = "kubernetes.io/hostname"


def allows_node(storage_class: StorageClass, labels: Mapping[str, str]) -> bool:
    """Report whether a class allows volumes on a node with these labels."""
    terms = storage_class.allowed_topologies
    return not terms or any(_matches(term, labels) for term in terms)


def matching_topology(storage_class: StorageClass, node: Node | None) -> TopologySelectorTerm | None:
    """Return the allowed topology of a new volume: the one of its node, or the first if no node is selected."""
    terms = storage_class.allowed_topologies
    if node is None:
        return terms[0] if terms else None
    return next((term for term in terms if _matches(term, node.metadata.labels)), None)


def _matches(term: TopologySelectorTerm, labels: Mapping[str, str]) -> bool:
    return all(labels.get(one.key) in one.values for one in term.match_label_expressions or ())


def affinity_for(topology: TopologySelectorTerm, node: Node | None) -> dict[str, Any]:
    """Return the affinity to the nodes of a topology; of several values, to that of the node, or else the first."""
    labels = node.metadata.labels if node is not None else {}
    values = {one.key: labels.get(one.key, one.values[0]) for one in topology.match_label_expressions or ()}
    return _affinity(values)


def local_affinity(node: Node) -> dict[str, Any]:
    """Return the affinity to one node."""
    return _affinity({_HOSTNAME: node.metadata.labels.get(_HOSTNAME, node.name)})


def _affinity(values: Mapping[str, str]) -> dict[str, Any]:
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in values.items()]
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
