"""The controllers of nodes: lifecycle, eviction by taints, and collection of pods, for a cluster of a test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from konverge import Client, Manager
from konverge_cluster.node_lifecycle import node_lifecycle_controllers
from konverge_cluster.pod_gc import pod_gc_controller
from konverge_cluster.taint_eviction import taint_eviction_controller

__all__ = ["node_controllers"]


@asynccontextmanager
async def node_controllers(
    client: Client, clock: Callable[[], float], *, require_lease: bool = True, threshold: int = 0
) -> AsyncGenerator[None]:
    """Run them while the block runs; `threshold` is the number of finished pods that are kept, 0 for all."""
    manager = Manager(client, name="kube-controller-manager")
    manager.add(*node_lifecycle_controllers(clock=clock, require_lease=require_lease))
    manager.add(taint_eviction_controller(clock), pod_gc_controller(clock, threshold=threshold))
    async with manager.running():
        yield
