"""Filters for what a node has a limited amount of: resources and ports."""

from __future__ import annotations

from collections.abc import Sequence

from konverge_cluster.nodes.scheduling.snapshot import NodeCheck, NodeInfo, PodInfo, Rejection, Snapshot

__all__ = ["filter_host_ports", "filter_resources"]


def filter_host_ports(pod: PodInfo, snapshot: Snapshot) -> NodeCheck | None:
    """Reject nodes where another pod uses a host port that the pod needs."""
    needed = pod.host_ports
    rejected = (Rejection("node(s) didn't have free ports for the requested pod ports", resolvable=True),)

    def check(node: NodeInfo) -> Sequence[Rejection]:
        in_use = [port for other in snapshot.pods.get(node.name, ()) for port in other.host_ports]
        return rejected if any(one.conflicts(other) for one in needed for other in in_use) else ()

    return check if needed else None


def filter_resources(pod: PodInfo, snapshot: Snapshot) -> NodeCheck:
    """Reject nodes that have too little left of a resource, one reason for each."""

    def check(node: NodeInfo) -> Sequence[Rejection]:
        used = snapshot.used.get(node.name, {})
        free = {name: node.allocatable.get(name, 0) - used.get(name, 0) for name in pod.requests}
        short = [name for name, amount in pod.requests.items() if amount > free[name]]
        resolvable = all(name == "pods" or pod.requests[name] <= node.allocatable.get(name, 0) for name in short)
        return [Rejection("Too many pods" if name == "pods" else f"Insufficient {name}", resolvable) for name in short]

    return check
