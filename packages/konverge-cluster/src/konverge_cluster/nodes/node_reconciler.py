"""The reconciler of nodes: renews leases, marks nodes without renewals as unreachable and evicts their pods.

The second half is the node lifecycle controller of a kube-controller-manager. It is off where a real one runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from konverge.errors import NotFound
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import Node, Pod
from konverge.objects import Key, Unstructured, kind_of
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.clock import Clock, utc_now
from konverge_cluster.nodes.container_states import format_time
from konverge_cluster.nodes.evictions import evict, mark_not_ready
from konverge_cluster.nodes.node_objects import LEASE_SECONDS, SimulatedNode, node_lease, ready_conditions

__all__ = ["NODES", "NodeReconciler"]

NODES: Final = kind_of(Node)
_LEASES: Final = kind_of(Lease)
_PODS: Final = kind_of(Pod)
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_OWN_TAINTS: Final = (_NOT_READY, _UNREACHABLE, _UNSCHEDULABLE)


class NodeReconciler(Reconciler[Unstructured]):
    """Renews the lease of a running node; with `lifecycle`, sets taints and evicts the pods of an unreachable node."""

    def __init__(self, nodes: Mapping[str, SimulatedNode], *, clock: Clock, heartbeat: float, lifecycle: bool) -> None:
        self._nodes = nodes
        self._clock = clock
        self._heartbeat = heartbeat
        self._lifecycle = lifecycle
        self._tainted_since: dict[str, datetime] = {}  # by node, since when it has a NoExecute taint

    async def reconcile(self, obj: Unstructured, ctx: Context) -> Result | None:
        """Renew the lease of a node and, with `lifecycle`, monitor its health."""
        obj.update({"apiVersion": "v1", "kind": "Node"})  # items of a list omit both
        simulated = self._nodes.get(obj.name)
        if simulated is None:
            return None
        now = utc_now(self._clock)
        waits: list[float | None] = []
        if simulated.down_since is None:
            await self._renew(obj, now, ctx)
            waits.append(self._heartbeat or None)
        if self._lifecycle:
            waits.append(await self._monitor_health(obj, simulated.down_since, now, ctx))
        wait = min((one for one in waits if one is not None), default=None)
        return None if wait is None else Result.requeue(wait, reason="a heartbeat or an eviction is due")

    def gone(self, key: Key) -> None:
        """Forget the taint time of a deleted node."""
        self._tainted_since.pop(key.name, None)

    # The kubelet

    async def _renew(self, node: Unstructured, now: datetime, ctx: Context) -> None:
        client = ctx.client.using(field_manager="kubelet")
        if self._heartbeat:
            lease = node_lease(node, now)
            try:
                await client.patch(_LEASES, Key("kube-node-lease", node.name), {"spec": lease["spec"]})
            except NotFound:
                await client.create(Unstructured(lease))
        present = node["status"].get("conditions", [])
        if not any(one["type"] == "Ready" and one["status"] == "True" for one in present):
            await self._patch_conditions(node, ready_conditions(present, now), ctx)

    # The node lifecycle controller

    async def _monitor_health(
        self, node: Unstructured, down_since: datetime | None, now: datetime, ctx: Context
    ) -> float | None:
        """Update the taints of a node and evict pods accordingly; return seconds until the next check."""
        left = 0.0 if down_since is None else (down_since + timedelta(seconds=LEASE_SECONDS) - now).total_seconds()
        if left > 0:
            return left
        if down_since is not None:
            await self._mark_unreachable(node, now, ctx)
        taints = await self._set_taints(node, down_since is not None, now, ctx)
        no_execute = [one for one in taints if one["effect"] == "NoExecute"]
        if not no_execute:
            self._tainted_since.pop(node.name, None)
            return None
        added = [datetime.fromisoformat(one["timeAdded"]) for one in no_execute if one.get("timeAdded")]
        since = self._tainted_since.setdefault(node.name, max(added, default=now))
        return await evict(await self._pods_of(node, ctx), no_execute, ctx, since=since, now=now)

    async def _mark_unreachable(self, node: Unstructured, now: datetime, ctx: Context) -> None:
        present = node["status"].get("conditions", [])
        if any(one["type"] == "Ready" and one["status"] != "Unknown" for one in present):
            await self._patch_conditions(node, _unknown_conditions(present, now), ctx)
            message = f"Node {node.name} status is now: NodeNotReady"
            ctx.event("NodeNotReady", message, reporter="node-controller")
            for pod in await self._pods_of(node, ctx):
                await mark_not_ready(pod, ctx, now=now)

    async def _pods_of(self, node: Unstructured, ctx: Context) -> list[Unstructured]:
        return list(await ctx.client.list(_PODS, fields=f"spec.nodeName={node.name}"))

    async def _set_taints(
        self, node: Unstructured, unreachable: bool, now: datetime, ctx: Context
    ) -> list[dict[str, Any]]:
        """Set the taints that follow from the state of a node, keep those of others; return all its taints."""
        present = node["spec"].get("taints", [])
        desired = [(_UNREACHABLE, "NoSchedule"), (_UNREACHABLE, "NoExecute")] if unreachable else []
        if node["spec"].get("unschedulable"):
            desired.append((_UNSCHEDULABLE, "NoSchedule"))
        own = {(one["key"], one["effect"]): one for one in present if one["key"] in _OWN_TAINTS}
        if own.keys() == set(desired):
            return list(present)
        added = format_time(now)
        created = [own.get(one, {"key": one[0], "effect": one[1], "timeAdded": added}) for one in desired]
        taints = [*(one for one in present if one["key"] not in _OWN_TAINTS), *created]
        client = ctx.client.using(field_manager="kube-controller-manager")
        await client.patch(NODES, node.key, {"spec": {"taints": taints or None}})
        return taints

    async def _patch_conditions(self, node: Unstructured, conditions: list[dict[str, Any]], ctx: Context) -> None:
        patch = {"status": {"conditions": conditions}}
        await ctx.client.patch(NODES, node.key, patch, patch_type="strategic", subresource="status")


def _unknown_conditions(present: list[Mapping[str, Any]], now: datetime) -> list[dict[str, Any]]:
    condition = {
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": format_time(now),
    }
    return [{**one, **condition} for one in present]
