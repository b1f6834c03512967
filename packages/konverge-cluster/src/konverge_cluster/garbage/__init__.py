"""Garbage collection: delete objects whose owners are gone.

    async with GarbageCollector(client).running():
        ...

The collector monitors every kind that the server serves, by metadata only, CRDs as they are added and removed. `graph`
has owners and dependents, `actions` decides, both without I/O; `monitors` and `collector` do the requests.
"""

from konverge_cluster.garbage.actions import Action, OwnerState, required_actions
from konverge_cluster.garbage.collector import GarbageCollector
from konverge_cluster.garbage.graph import GraphNode, OwnerGraph, OwnerReference

__all__ = ["Action", "GarbageCollector", "GraphNode", "OwnerGraph", "OwnerReference", "OwnerState", "required_actions"]
