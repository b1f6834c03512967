"""Simulated nodes: pods are scheduled, start, become ready, terminate and are deleted; no process is started.

        nodes = SimulatedNodes(client, nodes=3)
        nodes.program(Behavior(image="bad:*", never_ready=True))
        async with nodes.running():
        ...

They work with any control plane that has no nodes, embedded or real. `pod_lifecycle` is the lifecycle of a pod as a
pure state machine, `scheduler` selects nodes, `behaviors` describes what containers do.
"""

from konverge_cluster.nodes.behaviors import ANNOTATION, Behavior, Program
from konverge_cluster.nodes.node_objects import SimulatedNode
from konverge_cluster.nodes.pod_lifecycle import PodAddresses, PodEvent, PodSync, sync_pod
from konverge_cluster.nodes.simulated_nodes import SimulatedNodes

__all__ = [
    "ANNOTATION",
    "Behavior",
    "PodAddresses",
    "PodEvent",
    "PodSync",
    "Program",
    "SimulatedNode",
    "SimulatedNodes",
    "sync_pod",
]
