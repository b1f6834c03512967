"""The controller of nodes: each says that it is there; one that does not is taken for lost, and its pods go elsewhere.

The second half is the node lifecycle controller of a kube-controller-manager, and is played only where there is none.
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
from konverge_cluster.nodes.evictions import evict, mark_not_ready
from konverge_cluster.nodes.node_objects import LEASE_SECONDS, SimulatedNode, node_lease, ready_conditions
from konverge_cluster.nodes.container_states import format_time

__all__ = ["NODES", "NodeReconciler"]

NODES: Final = kind_of(Node)
_LEASES: Final = kind_of(Lease)
_PODS: Final = kind_of(Pod)
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_OURS: Final = (_NOT_READY, _UNREACHABLE, _UNSCHEDULABLE)


class NodeReconciler(Reconciler[Unstructured]):
    """Renews the lease of a node that is there; with `lifecycle`, sees to its taints, and to the pods of a lost one."""

    def __init__(self, machines: Mapping[str, SimulatedNode], *, clock: Clock, heartbeat: float, lifecycle: bool) -> None:
        self._nodes = machines
        self._clock = clock
        self._heartbeat = heartbeat
        self._lifecycle = lifecycle
        self._kept_out: dict[str, datetime] = {}  # by node, since when pods are kept from staying

    async def reconcile(self, obj: Unstructured, ctx: Context) -> Result | None:
        """Say that a node is there, or see to it that it is not."""
        obj.update({"apiVersion": "v1", "kind": "Node"})  # those of a list do not say it
        machine = self._nodes.get(obj.name)
        if machine is None:
            return None
        now = utc_now(self._clock)
        waits: list[float | None] = []
        if machine.down_since is None:
            await self._report(obj, now, ctx)
            waits.append(self._heartbeat or None)
        if self._lifecycle:
            waits.append(await self._oversee(obj, machine.down_since, now, ctx))
        wait = min((one for one in waits if one is not None), default=None)
        return None if wait is None else Result.requeue(wait, reason="a heartbeat, or the end of somebody's toleration_seconds")

    def gone(self, key: Key) -> None:
        """Forget since when a node that is gone has kept pods out."""
        self._kept_out.pop(key.name, None)

    # The kubelet

    async def _report(self, node: Unstructured, now: datetime, ctx: Context) -> None:
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

    async def _oversee(self, node: Unstructured, down_since: datetime | None, now: datetime, ctx: Context) -> float | None:
        """See to the taints of a node, and to the pods that they keep out; give when to look again."""
        left = 0.0 if down_since is None else (down_since + timedelta(seconds=LEASE_SECONDS) - now).total_seconds()
        if left > 0:
            return left
        if down_since is not None:
            await self._declare_lost(node, now, ctx)
        taints = await self._set_taints(node, down_since is not None, now, ctx)
        executing = [one for one in taints if one["effect"] == "NoExecute"]
        if not executing:
            self._kept_out.pop(node.name, None)
            return None
        added = [datetime.fromisoformat(one["timeAdded"]) for one in executing if one.get("timeAdded")]
        since = self._kept_out.setdefault(node.name, max(added, default=now))
        return await evict(await self._pods_of(node, ctx), executing, ctx, since=since, now=now)

    async def _declare_lost(self, node: Unstructured, now: datetime, ctx: Context) -> None:
        present = node["status"].get("conditions", [])
        if any(one["type"] == "Ready" and one["status"] != "Unknown" for one in present):
            await self._patch_conditions(node, _unknown(present, now), ctx)
            words = f"Node {node.name} status is now: NodeNotReady"
            ctx.event("NodeNotReady", words, reporter="node-controller")
            for pod in await self._pods_of(node, ctx):
                await mark_not_ready(pod, ctx, now=now)

    async def _pods_of(self, node: Unstructured, ctx: Context) -> list[Unstructured]:
        return list(await ctx.client.list(_PODS, fields=f"spec.nodeName={node.name}"))

    async def _set_taints(self, node: Unstructured, lost: bool, now: datetime, ctx: Context) -> list[dict[str, Any]]:
        """Let a node have the taints that its state makes, beside those of others; give all that it has then."""
        present = node["spec"].get("taints", [])
        wanted = [(_UNREACHABLE, "NoSchedule"), (_UNREACHABLE, "NoExecute")] if lost else []
        if node["spec"].get("unschedulable"):
            wanted.append((_UNSCHEDULABLE, "NoSchedule"))
        ours = {(one["key"], one["effect"]): one for one in present if one["key"] in _OURS}
        if ours.keys() == set(wanted):
            return list(present)
        added = format_time(now)
        made = [ours.get(one, {"key": one[0], "effect": one[1], "timeAdded": added}) for one in wanted]
        taints = [*(one for one in present if one["key"] not in _OURS), *made]
        client = ctx.client.using(field_manager="kube-controller-manager")
        await client.patch(NODES, node.key, {"spec": {"taints": taints or None}})
        return taints

    async def _patch_conditions(self, node: Unstructured, conditions: list[dict[str, Any]], ctx: Context) -> None:
        patch = {"status": {"conditions": conditions}}
        await ctx.client.patch(NODES, node.key, patch, patch_type="strategic", subresource="status")


def _unknown(present: list[Mapping[str, Any]], now: datetime) -> list[dict[str, Any]]:
    said = {
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": format_time(now),
    }
    return [{**one, **said} for one in present]
