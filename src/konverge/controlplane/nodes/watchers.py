"""The controller of nodes: each says that it is there; one that does not is taken for lost, and its pods go elsewhere.

The second half is the node lifecycle controller of a kube-controller-manager, and is played only where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from konverge.controlplane.nodes.machines import LEASE_SECONDS, Machine, lease_of, reported
from konverge.controlplane.nodes.runs import stamp
from konverge.controlplane.nodes.scheduling import is_tolerated
from konverge.controlplane.workloads.moments import Clock, moment
from konverge.errors import NotFound
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import Node
from konverge.objects import Key, Untyped, kind_of
from konverge.reconcile import Context, Reconciler, Result

__all__ = ["NODES", "NodeReconciler"]

NODES: Final = kind_of(Node)
_LEASES: Final = kind_of(Lease)
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_OURS: Final = (_NOT_READY, _UNREACHABLE)
_CONTROLLER: Final = "node-controller"


class NodeReconciler(Reconciler[Untyped]):
    """Renews the lease of a node that is there; with `lifecycle`, sees to its taints, and to the pods of a lost one."""

    def __init__(self, machines: Mapping[str, Machine], *, clock: Clock, heartbeat: float, lifecycle: bool) -> None:
        self._machines = machines
        self._clock = clock
        self._heartbeat = heartbeat
        self._lifecycle = lifecycle

    async def reconcile(self, obj: Untyped, ctx: Context) -> Result | None:
        """Say that a node is there, or see to it that it is not."""
        obj.update({"apiVersion": "v1", "kind": "Node"})
        machine = self._machines.get(obj.name)
        if machine is None:
            return None
        now = moment(self._clock)
        if machine.away is None:
            await self._report(obj, now, ctx)
            return Result.again(self._heartbeat, reason="the next heartbeat") if self._heartbeat else None
        return await self._see_off(obj, machine.away, now, ctx) if self._lifecycle else None

    # A node that is there

    async def _report(self, node: Untyped, now: datetime, ctx: Context) -> None:
        client = ctx.client.using(field_manager="kubelet")
        if self._heartbeat:
            lease = lease_of(node, now)
            try:
                await client.patch(_LEASES, Key("kube-node-lease", node.name), {"spec": lease["spec"]})
            except NotFound:
                await client.create(Untyped(lease))
        present = node["status"].get("conditions", [])
        if not any(one["type"] == "Ready" and one["status"] == "True" for one in present):
            await self._patch_conditions(node, reported(present, now), ctx)
        if self._lifecycle:
            await self._set_taints(node, [], ctx)

    # A node that is not

    async def _see_off(self, node: Untyped, since: datetime, now: datetime, ctx: Context) -> Result | None:
        left = (since + timedelta(seconds=LEASE_SECONDS) - now).total_seconds()
        if left > 0:
            return Result.again(left, reason="it may come back")
        pods = list(await ctx.client.list("pods", fields=f"spec.nodeName={node.name}"))
        present = node["status"].get("conditions", [])
        if any(one["type"] == "Ready" and one["status"] != "Unknown" for one in present):
            await self._patch_conditions(node, _unknown(present, now), ctx)
            ctx.event("NodeNotReady", f"Node {node.name} status is now: NodeNotReady", reporter=_CONTROLLER)
            for pod in pods:
                await self._mark_unready(pod, now, ctx)
        added = stamp(now)
        taints = [
            {"key": _UNREACHABLE, "effect": "NoSchedule", "timeAdded": added},
            {"key": _UNREACHABLE, "effect": "NoExecute", "timeAdded": added},
        ]
        tainted = await self._set_taints(node, taints, ctx)
        return await self._evict(pods, tainted, now, ctx)

    async def _mark_unready(self, pod: Untyped, now: datetime, ctx: Context) -> None:
        conditions = [dict(one) for one in (pod.get("status") or {}).get("conditions", ())]
        ready = [one for one in conditions if one["type"] == "Ready" and one["status"] == "True"]
        if not ready:
            return
        patch = {"type": "Ready", "status": "False", "lastTransitionTime": stamp(now)}
        await self._patch_pod(pod, patch, ctx)
        ctx.event("NodeNotReady", "Node is not ready", warning=True, about=_named(pod), reporter=_CONTROLLER)

    async def _evict(self, pods: list[Untyped], tainted: datetime, now: datetime, ctx: Context) -> Result | None:
        waits = []
        for pod in pods:
            if "deletionTimestamp" in pod.metadata:
                continue
            patience = _patience(pod["spec"].get("tolerations", ()))
            if patience is None:
                continue
            left = (tainted + timedelta(seconds=patience) - now).total_seconds()
            if left > 0:
                waits.append(left)
                continue
            await self._remove(pod, now, ctx)
        return Result.again(min(waits), reason="pods are patient with their node") if waits else None

    async def _remove(self, pod: Untyped, now: datetime, ctx: Context) -> None:
        words = f"Marking for deletion Pod {pod.key}"
        ctx.event("TaintManagerEviction", words, about=_named(pod), reporter="taint-eviction-controller")
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": stamp(now),
        }
        await self._patch_pod(pod, condition, ctx)
        await ctx.client.delete(_named(pod), missing_ok=True)

    # Writing

    async def _patch_pod(self, pod: Untyped, condition: dict[str, Any], ctx: Context) -> None:
        client = ctx.client.using(field_manager="kube-controller-manager")
        patch = {"status": {"conditions": [condition]}}
        try:
            await client.patch("pods", pod.key, patch, patch_type="strategic", subresource="status")
        except NotFound:
            return

    async def _patch_conditions(self, node: Untyped, conditions: list[dict[str, Any]], ctx: Context) -> None:
        patch = {"status": {"conditions": conditions}}
        await ctx.client.patch(NODES, node.key, patch, patch_type="strategic", subresource="status")

    async def _set_taints(self, node: Untyped, wanted: list[dict[str, Any]], ctx: Context) -> datetime:
        """Let a node have these taints of ours, beside those of others; give when they were added."""
        present = node["spec"].get("taints", [])
        ours = [one for one in present if one["key"] in _OURS]
        if {(one["key"], one["effect"]) for one in ours} == {(one["key"], one["effect"]) for one in wanted}:
            added = [one["timeAdded"] for one in ours if "timeAdded" in one]
            return datetime.fromisoformat(added[0]) if added else moment(self._clock)
        taints = [*(one for one in present if one["key"] not in _OURS), *wanted]
        client = ctx.client.using(field_manager="kube-controller-manager")
        await client.patch(NODES, node.key, {"spec": {"taints": taints or None}})
        return moment(self._clock)


def _unknown(present: list[Mapping[str, Any]], now: datetime) -> list[dict[str, Any]]:
    said = {
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": stamp(now),
    }
    return [{**one, **said} for one in present]


def _patience(tolerations: Any) -> float | None:
    """Give how long a pod stays on a node that cannot be reached, in seconds; None for ever."""
    taint = {"key": _UNREACHABLE, "effect": "NoExecute"}
    fitting = [one for one in tolerations if is_tolerated(taint, [one])]
    if not fitting:
        return 0.0
    limits = [float(one["tolerationSeconds"]) for one in fitting if "tolerationSeconds" in one]
    return min(limits) if limits else None


def _named(pod: Untyped) -> Untyped:
    return Untyped({**pod, "apiVersion": "v1", "kind": "Pod"})
