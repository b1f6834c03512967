"""The reconciler of nodes: monitors their heartbeats, and sets conditions and taints accordingly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Any, Final

from konverge.cache import Event
from konverge.controller import Controller, controller_for
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import Node, NodeCondition, Pod, Taint
from konverge.objects import Key, to_wire
from konverge.reconcile import Context, Reconciler, Result
from konverge.triggers import Predicate, anything
from konverge_cluster.clock import Clock, truncate_to_seconds, utc_now
from konverge_cluster.node_lifecycle.health import Heartbeat, ready_status, unknown_conditions
from konverge_cluster.node_lifecycle.pod_readiness import NODE_CONTROLLER, mark_not_ready
from konverge_cluster.node_lifecycle.taints import EXECUTE_TAINTS, has_execute_taint, schedule_taints, set_taints
from konverge_cluster.node_lifecycle.zones import TaintLimiter, eviction_rates, zone_of
from konverge_cluster.pods_by_node import NODE_OF_POD, PODS_BY_NODE
from konverge_cluster.status_writes import controller_client

__all__ = ["NodeLifecycleReconciler", "node_controller"]

_LEASES: Final = "kube-node-lease"
_MONITOR_PERIOD: Final = 5.0


class NodeLifecycleReconciler(Reconciler[Node]):
    """Sets the conditions of a node that sends no heartbeats to Unknown, and the taints that follow from conditions.

    Promises: a node with heartbeats keeps its conditions; its taints follow at once. The pods of a node that becomes
    Unknown are marked as not ready.
    """

    def __init__(self, clock: Clock, grace_period: float, *, require_lease: bool) -> None:
        self._clock = clock
        self._grace_period = grace_period
        self._require_lease = require_lease
        self._heartbeats: dict[str, Heartbeat] = {}
        self._removal_events: dict[str, Callable[[], None]] = {}
        self._limiter = TaintLimiter()

    async def reconcile(self, obj: Node, ctx: Context) -> Result | None:
        """Update the conditions and taints of a node; reconcile it again when it could be dead."""
        now = utc_now(self._clock)
        if obj.name not in self._removal_events:
            self._register(obj, ctx)
        left = await self._seconds_left(obj, now, ctx)
        if left is not None and left <= 0:
            obj = await self._mark_unknown(obj, truncate_to_seconds(now), ctx)
        await self._set_taints(obj, truncate_to_seconds(now), ctx)
        if ready_status(obj) != "True":
            return Result.requeue(_MONITOR_PERIOD, reason="the node is not ready")
        return None if left is None else Result.requeue(left, reason="a heartbeat is due")

    def gone(self, key: Key) -> None:
        """Forget a deleted node, with an event."""
        self._heartbeats.pop(key.name, None)
        removed = self._removal_events.pop(key.name, None)
        if removed is not None:
            removed()

    def _register(self, node: Node, ctx: Context) -> None:
        about = f"Node {node.name} event:"
        message = f"{about} Registered Node {node.name} in Controller"
        ctx.event("RegisteredNode", message, reporter=NODE_CONTROLLER)
        message = f"{about} Removing Node {node.name} from Controller"
        self._removal_events[node.name] = partial(ctx.event, "RemovingNode", message, reporter=NODE_CONTROLLER)

    # Heartbeats

    async def _seconds_left(self, node: Node, now: datetime, ctx: Context) -> float | None:
        """Return in how many seconds a node is dead without another heartbeat; None if it sends none."""
        lease = await ctx.get(Lease, Key(_LEASES, node.name))
        if lease is None and self._require_lease:
            self._heartbeats.pop(node.name, None)
            return None
        renewed = lease.spec.renew_time if lease is not None else None
        last = self._heartbeats.get(node.name) or Heartbeat.first(node, now)
        self._heartbeats[node.name] = last.observe(node, renewed, now)
        return self._heartbeats[node.name].seconds_left(node, self._grace_period, now)

    async def _mark_unknown(self, node: Node, now: datetime, ctx: Context) -> Node:
        conditions = unknown_conditions(node, now)
        if conditions == node.status.conditions:
            return node
        was_ready = ready_status(node) == "True"
        node = await self._write_conditions(node, conditions, ctx)
        if was_ready:
            ctx.event("NodeNotReady", f"Node {node.name} status is now: NodeNotReady", reporter=NODE_CONTROLLER)
            for pod in ctx.find(Pod, PODS_BY_NODE, node.name):
                await mark_not_ready(pod, self._clock, ctx)
        return node

    async def _write_conditions(self, node: Node, conditions: Iterable[NodeCondition], ctx: Context) -> Node:
        patch = {**_version_of(node), "status": {"conditions": to_wire(list(conditions))}}
        return await controller_client(ctx).patch(Node, node.key, patch, subresource="status")

    # Taints

    async def _set_taints(self, node: Node, now: datetime, ctx: Context) -> None:
        taints = await self._execute_taints(node, schedule_taints(node, now), now, ctx)
        if taints != node.spec.taints:
            patch = {**_version_of(node), "spec": {"taints": to_wire(taints) or None}}
            await controller_client(ctx).patch(Node, node.key, patch)

    async def _execute_taints(self, node: Node, taints: list[Taint], now: datetime, ctx: Context) -> list[Taint]:
        """Return the taints of a node with the NoExecute taint that it should have, as far as the limits allow."""
        status = ready_status(node)
        keys = [EXECUTE_TAINTS[status]] if status in EXECUTE_TAINTS else []
        if keys:
            rates = eviction_rates(await ctx.list(Node))
            if not rates:
                keys = []
            elif not has_execute_taint(taints) and not self._limiter.acquire(zone_of(node), rates, now):
                return taints
        elif not status:
            return taints
        return set_taints(taints, keys, effect="NoExecute", owned=tuple(EXECUTE_TAINTS.values()), now=now)


def _version_of(node: Node) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": node.resource_version}}


def node_controller(clock: Clock, grace_period: float, *, require_lease: bool) -> Controller[Node]:
    """Return the controller of nodes."""
    reconciler = NodeLifecycleReconciler(clock, grace_period, require_lease=require_lease)
    builder = controller_for(Node).named("node-lifecycle").predicate(anything)
    builder.watches(Lease, _to_node, predicate=Predicate(_exists_or_not))
    builder.watches(Pod, lambda _: ()).index(Pod, PODS_BY_NODE, NODE_OF_POD)
    builder.needs(Node, "patch").needs(Node, "patch", subresource="status").needs(Pod, "patch", subresource="status")
    return builder.build(reconciler)


def _to_node(event: Event) -> Iterable[Key]:
    return [Key("", event.key.name)] if event.key.namespace == _LEASES else []


def _exists_or_not(event: Event) -> bool:
    """Report whether a Lease was created or deleted; how often it is renewed is checked when the node could be dead."""
    return event.old is None or event.new is None
