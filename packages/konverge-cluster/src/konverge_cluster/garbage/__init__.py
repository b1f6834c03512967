"""Garbage collection: what nobody owns any more goes.

    async with GarbageCollector(client).running():
        ...

It follows every kind that the server serves, by metadata only, custom resources as they come and go. `graph` holds who
owns whom, `verdicts` says what becomes of a thing, both without I/O; `following` and `collector` do the asking.
"""

from konverge_cluster.garbage.collector import GarbageCollector
from konverge_cluster.garbage.graph import OwnerGraph, Owning, Thing
from konverge_cluster.garbage.verdicts import Standing, Verdict, verdict_on

__all__ = ["GarbageCollector", "OwnerGraph", "Owning", "Standing", "Thing", "Verdict", "verdict_on"]
