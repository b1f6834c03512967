"""A stand-in for nodes: pods are scheduled, start, become ready, end and go, and nothing is run.

    stand_in = SimulatedNodes(client, nodes=3)
    stand_in.program(Behaviour(image="bad:*", never_ready=True))
    async with stand_in.running():
        ...

It works against any control plane that has no nodes, the embedded one or a real one. `life` is the life of a pod as a
pure state machine, `scheduling` the choice of a node; `behaviours` is what can be told to containers.
"""

from konverge_cluster.nodes.behaviours import ANNOTATION, Behaviour, Program
from konverge_cluster.nodes.life import Place, Step, Told, live
from konverge_cluster.nodes.machines import Machine
from konverge_cluster.nodes.simulated_nodes import SimulatedNodes

__all__ = ["ANNOTATION", "Behaviour", "Machine", "Place", "Program", "SimulatedNodes", "Step", "Told", "live"]
