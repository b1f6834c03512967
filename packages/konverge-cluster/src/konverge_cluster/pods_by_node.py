"""The index of pods by their node, and the mapper from a node to its pods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from konverge.k8s.core.v1 import Node, Pod
from konverge.objects import Key
from konverge.triggers import CacheReader, to_keys
from konverge.triggers.mappers import CacheMapper

__all__ = ["NODE_OF_POD", "PODS_BY_NODE", "to_pods_of_node"]

PODS_BY_NODE: Final = "pods-by-node"
"""The name of the index."""

NODE_OF_POD: Final = ".spec.nodeName"
"""What is indexed."""


def to_pods_of_node() -> CacheMapper:
    """Map a node to its pods; the controller needs the index `PODS_BY_NODE` of `NODE_OF_POD`."""
    return to_keys(_pods_of_node, Node)


def _pods_of_node(node: Node, reader: CacheReader) -> Iterable[Key]:
    return [pod.key for pod in reader.find(Pod, PODS_BY_NODE, node.name)]
