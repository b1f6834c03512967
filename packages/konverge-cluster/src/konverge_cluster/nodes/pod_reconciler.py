"""The controller of pods: gives a node to those that have none, and plays the life of those on its own nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Final

from konverge.errors import Conflict, KonvergeError, NotFound, TerminalError
from konverge.k8s.core.v1 import Pod
from konverge.objects import Unstructured, kind_of, merge_patch
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.clock import Clock, moment
from konverge_cluster.nodes.behaviors import Behavior, PodInfo, Program
from konverge_cluster.nodes.evictions import delete_orphan
from konverge_cluster.nodes.pod_lifecycle import PodAddresses, PodSync, sync_pod
from konverge_cluster.nodes.node_objects import SimulatedNode
from konverge_cluster.nodes.scheduler_cache import SchedulerCache
from konverge_cluster.nodes.container_states import format_time
from konverge_cluster.nodes.scheduler import Unschedulable, requests_of

__all__ = ["PODS", "PodReconciler"]

PODS: Final = kind_of(Pod)
_SCHEDULER: Final = "default-scheduler"
_STEPS_AT_ONCE: Final = 10
_LOOK_AGAIN: Final = 300.0
_SURE_AFTER: Final = 40.0


class PodReconciler(Reconciler[Unstructured]):
    """Carries a pod through its life; what that is says `life.sync_pod`.

    Pods of other nodes, and of nodes that are down_since, are left alone; with `lifecycle`, those of nodes that are no longer
    there are removed.
    """

    sees_deleting: ClassVar[bool] = True

    def __init__(
        self,
        machines: Mapping[str, SimulatedNode],
        program: Program,
        placing: SchedulerCache,
        *,
        clock: Clock,
        schedules: bool,
        lifecycle: bool,
    ) -> None:
        self._nodes = machines
        self._program = program
        self._placing = placing
        self._clock = clock
        self._schedules = schedules
        self._lifecycle = lifecycle
        self._missed: dict[str, datetime] = {}  # nodes that are no longer there, and since when

    async def reconcile(self, obj: Unstructured, ctx: Context) -> Result | None:
        """Give a pod a node, or bring it forward on the one it has."""
        obj.update({"apiVersion": "v1", "kind": "Pod"})  # those of a list do not say it
        node = obj["spec"].get("nodeName", "")
        if not node:
            return await self._schedule(obj, ctx) if self._schedules else None
        if self._lifecycle and not self._placing.has_node(node):
            return await self._outlive(obj, node, ctx)
        self._missed.pop(node, None)
        machine = self._nodes.get(node)
        if machine is None or machine.down_since is not None:
            return None
        try:
            return await self._bring_forward(obj, machine, ctx)
        except NotFound:
            return None  # it is gone, and its event is on the way

    async def _outlive(self, pod: Unstructured, node: str, ctx: Context) -> Result | None:
        """Remove a pod whose node is no longer there, once that is sure."""
        now = moment(self._clock)
        since = self._missed.setdefault(node, now)
        left = _SURE_AFTER - (now - since).total_seconds()
        if left > 0:
            return Result.requeue(left, reason="its node may come back")
        await delete_orphan(pod, ctx, now=now)
        return None

    # The scheduler

    async def _schedule(self, pod: Unstructured, ctx: Context) -> Result | None:
        spec = pod["spec"]
        foreign = spec.get("schedulerName", _SCHEDULER) != _SCHEDULER
        if foreign or "deletionTimestamp" in pod.metadata or spec.get("schedulingGates"):
            return None
        chosen = self._placing.place(pod.uid, pod.key, spec)
        if isinstance(chosen, Unschedulable):
            await self._tell_unfit(pod, chosen, ctx)
            return Result.requeue(_LOOK_AGAIN, reason="no node fits")
        try:
            await ctx.client.using(field_manager="kube-scheduler").act(pod, "binding", _binding(pod, chosen))
        except KonvergeError as error:
            self._placing.ledger.leave(pod.uid)
            if isinstance(error, NotFound | Conflict):
                return None  # it went, or somebody else was faster: either way it will be told
            raise
        words = f"Successfully assigned {pod.key} to {chosen}"
        ctx.event("Scheduled", words, action="Binding", reporter=_SCHEDULER)
        return None

    async def _tell_unfit(self, pod: Unstructured, unfit: Unschedulable, ctx: Context) -> None:
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": unfit.message}
        present = [one for one in (pod.get("status") or {}).get("conditions", ()) if one["type"] == "PodScheduled"]
        if present and all(present[0].get(name) == value for name, value in said.items()):
            return
        now = format_time(moment(self._clock))
        since = present[0]["lastTransitionTime"] if present and present[0]["status"] == "False" else now
        patch = {"status": {"conditions": [{**said, "lastTransitionTime": since}]}}
        client = ctx.client.using(field_manager="kube-scheduler")
        await client.patch(PODS, pod.key, patch, patch_type="strategic", subresource="status")
        ctx.event("FailedScheduling", unfit.message, warning=True, action="Scheduling", reporter=_SCHEDULER)

    # The kubelet

    async def _bring_forward(self, pod: Unstructured, machine: SimulatedNode, ctx: Context) -> Result | None:
        place = self._place(pod, machine)
        try:
            behavior = self._behaviors(pod)
        except ValueError as error:
            ctx.event("UnknownBehavior", str(error), warning=True, reporter="kubelet")
            raise TerminalError(f"an annotation of the pod is wrong: {error}") from error
        for _ in range(_STEPS_AT_ONCE):
            step = sync_pod(pod, moment(self._clock), place, behavior)
            pod = await self._write(pod, step, ctx)
            if step.gone:
                await ctx.client.delete(pod, grace_period=0, missing_ok=True)
                return None
            if step.after is None:
                return None
            if step.after > 0:
                return Result.requeue(step.after, reason="something is due")
        return Result.requeue(1.0, reason="it changes over and over")

    def _place(self, pod: Unstructured, machine: SimulatedNode) -> PodAddresses:
        if pod["spec"].get("hostNetwork"):
            return PodAddresses(machine.host, machine.host)
        ledger = self._placing.ledger
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            ledger.take(pod.uid, pod.key, machine.name, requests_of(pod["spec"]))
            return PodAddresses(machine.host, ledger.address(pod.uid, machine.network))
        return PodAddresses(machine.host, pod["status"].get("podIP", ""))

    def _behaviors(self, pod: Unstructured) -> Callable[[Mapping[str, Any]], Behavior]:
        metadata, spec = pod.metadata, pod["spec"]
        words = PodInfo(pod.name, pod.namespace, metadata.get("labels") or {}, metadata.get("annotations") or {})
        containers = [*spec.get("initContainers", ()), *spec["containers"]]
        found = {one["name"]: self._program.of(one["image"], one["name"], words) for one in containers}
        return lambda container: found[container["name"]]

    async def _write(self, pod: Unstructured, step: PodSync, ctx: Context) -> Unstructured:
        before = _without_nulls(pod.get("status") or {})
        patch = merge_patch(before, step.status)
        if patch:
            sent = {"metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version}, "status": patch}
            client = ctx.client.using(field_manager="kubelet")
            pod = await client.patch(PODS, pod.key, sent, subresource="status")
        for one in step.told:
            ctx.event(one.reason, one.message, warning=one.warning, reporter="kubelet")
        return pod


def _binding(pod: Unstructured, node: str) -> dict[str, Any]:
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def _without_nulls(value: Any) -> Any:
    """Leave out what the server writes for nothing, such as the time of a probe that was never made."""
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value
