"""A stand-in for nodes: pods are scheduled, start, become ready, end and go, and nothing is run.

    stand_in = SimulatedNodes(client, nodes=3)
    stand_in.program(Behavior(image="bad:*", never_ready=True))
    async with stand_in.running():
        ...

It works against any control plane that has no nodes, the embedded one or a real one. `life` is the life of a pod as a
pure state machine, `scheduling` the choice of a node; `behaviors` is what can be told to containers.
"""

from konverge_cluster.nodes.behaviors import ANNOTATION, Behavior, Program
from konverge_cluster.nodes.pod_lifecycle import PodAddresses, PodSync, PodEvent, sync_pod
from konverge_cluster.nodes.node_objects import SimulatedNode
from konverge_cluster.nodes.simulated_nodes import SimulatedNodes

__all__ = ["ANNOTATION", "Behavior", "SimulatedNode", "PodAddresses", "Program", "SimulatedNodes", "PodSync", "PodEvent", "sync_pod"]
