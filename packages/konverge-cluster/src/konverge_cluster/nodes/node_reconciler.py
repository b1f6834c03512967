"""The reconciler of nodes: renews their leases and posts their conditions, as kubelets do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from konverge.errors import NotFound
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import Node
from konverge.objects import Key, Unstructured, kind_of
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.clock import Clock, utc_now
from konverge_cluster.nodes.node_objects import SimulatedNode, node_lease, ready_conditions

__all__ = ["NODES", "NodeReconciler"]

NODES: Final = kind_of(Node)
_LEASES: Final = kind_of(Lease)


class NodeReconciler(Reconciler[Unstructured]):
    """Renews the lease of a running node, and reports it ready if it is not.

    Without heartbeats a node has no lease while it runs. When it stops it gets one with the time of the stop, so that
    the node lifecycle controller finds the last sign of life.
    """

    def __init__(self, nodes: Mapping[str, SimulatedNode], *, clock: Clock, heartbeat: float) -> None:
        self._nodes = nodes
        self._clock = clock
        self._heartbeat = heartbeat
        self._has_final_lease: set[str] = set()  # nodes without heartbeats that were stopped

    async def reconcile(self, obj: Unstructured, ctx: Context) -> Result | None:
        """Renew the lease of a node and post its conditions."""
        obj.update({"apiVersion": "v1", "kind": "Node"})  # items of a list omit both
        simulated = self._nodes.get(obj.name)
        if simulated is None:
            return None
        if simulated.down_since is not None:
            if not self._heartbeat and obj.name not in self._has_final_lease:
                await self._renew(obj, simulated.down_since, ctx)
                self._has_final_lease.add(obj.name)
            return None
        now = utc_now(self._clock)
        if self._heartbeat:
            await self._renew(obj, now, ctx)
        elif obj.name in self._has_final_lease:
            await ctx.client.delete(_LEASES, Key("kube-node-lease", obj.name), missing_ok=True)
            self._has_final_lease.discard(obj.name)
        await self._post_conditions(obj, now, ctx)
        return Result.requeue(self._heartbeat, reason="a heartbeat is due") if self._heartbeat else None

    def gone(self, key: Key) -> None:
        """Forget a deleted node."""
        self._has_final_lease.discard(key.name)

    async def _renew(self, node: Unstructured, now: datetime, ctx: Context) -> None:
        client = ctx.client.using(field_manager="kubelet")
        lease = node_lease(node, now)
        try:
            await client.patch(_LEASES, Key("kube-node-lease", node.name), {"spec": lease["spec"]})
        except NotFound:
            await client.create(Unstructured(lease))

    async def _post_conditions(self, node: Unstructured, now: datetime, ctx: Context) -> None:
        present = node["status"].get("conditions", [])
        if any(one["type"] == "Ready" and one["status"] == "True" for one in present):
            return
        patch = {"status": {"conditions": ready_conditions(present, now)}}
        await ctx.client.patch(NODES, node.key, patch, patch_type="strategic", subresource="status")
