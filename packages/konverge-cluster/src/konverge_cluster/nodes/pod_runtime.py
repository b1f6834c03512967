"""What can run the pods of nodes instead of the simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from ipaddress import IPv4Network
from typing import Protocol

from konverge.objects import Key, Unstructured
from konverge.reconcile import Context
from konverge_cluster.nodes.node_objects import SimulatedNode
from konverge_cluster.nodes.pod_lifecycle import PodAddresses, PodSync

__all__ = ["PodRuntime"]


class PodRuntime(Protocol):
    """Runs the containers of some pods. The other pods are simulated."""

    def runs(self, pod: Unstructured) -> bool:
        """Report whether it runs a pod; the result never changes for the same pod."""
        ...

    def network(self, node: SimulatedNode) -> IPv4Network:
        """Return the addresses for the pods that it runs on a node."""
        ...

    async def sync(self, pod: Unstructured, node: SimulatedNode, addresses: PodAddresses, ctx: Context) -> PodSync:
        """Do what is due for a pod on a node, and return the status to write."""
        ...

    def forget(self, key: Key) -> None:
        """Kill what is left of a pod that no longer exists."""
        ...

    def readers(self, kind: str, key: Key) -> Iterable[Key]:
        """Return the pods that read a ConfigMap or a Secret."""
        ...

    def running(self, changed: Callable[[Key], None]) -> AbstractAsyncContextManager[None]:
        """Run while the block runs; `changed` enqueues a pod for a sync."""
        ...
