"""The node lifecycle controller: nodes without heartbeats become Unknown, and taints follow from conditions.

    manager.add(*node_lifecycle_controllers())

`health` decides when a node is Unknown, `taints` which taints it has, `zones` how many nodes may be tainted NoExecute;
all three without I/O. What the taints do to pods is the work of `konverge_cluster.taint_eviction`.
"""

from __future__ import annotations

from typing import Any

from konverge.controller import Controller
from konverge.objects import wall_clock
from konverge_cluster.clock import Clock
from konverge_cluster.node_lifecycle.node_reconciler import node_controller
from konverge_cluster.node_lifecycle.pod_readiness import pod_readiness_controller

__all__ = ["GRACE_PERIOD", "node_lifecycle_controllers"]

GRACE_PERIOD = 50.0
"""After how many seconds without a heartbeat a node is Unknown: the default of kube-controller-manager."""


def node_lifecycle_controllers(
    *, clock: Clock = wall_clock, grace_period: float = GRACE_PERIOD, require_lease: bool = False
) -> tuple[Controller[Any], ...]:
    """Return the controllers of nodes, and of pods on nodes that are not ready.

    `clock` is the wall clock of the cluster, in seconds. With `require_lease`, a node without a Lease is taken to be
    healthy, which is for clusters whose nodes send no heartbeats.
    """
    return (node_controller(clock, grace_period, require_lease=require_lease), pod_readiness_controller(clock))
