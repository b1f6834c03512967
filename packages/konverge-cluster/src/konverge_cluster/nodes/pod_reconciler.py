"""The reconciler of pods: binds unscheduled pods and advances those on the simulated nodes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from ipaddress import IPv4Network
from typing import Any, ClassVar, Final

from konverge.errors import Conflict, KonvergeError, NotFound, TerminalError
from konverge.k8s.core.v1 import Pod
from konverge.objects import Key, Unstructured, kind_of, merge_patch
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.clock import Clock, utc_now
from konverge_cluster.nodes.behaviors import Behavior, PodInfo, Program
from konverge_cluster.nodes.commands import default_behavior
from konverge_cluster.nodes.container_states import format_time
from konverge_cluster.nodes.node_objects import SimulatedNode
from konverge_cluster.nodes.pod_lifecycle import PodAddresses, PodSync, sync_pod
from konverge_cluster.nodes.pod_runtime import PodRuntime
from konverge_cluster.nodes.scheduler import Unschedulable
from konverge_cluster.nodes.scheduler_cache import SchedulerCache
from konverge_cluster.nodes.scheduling.requests import requests_of
from konverge_cluster.nodes.scheduling.snapshot import PodInfo as ScheduledPod
from konverge_cluster.nodes.scheduling.volumes import PodVolumes
from konverge_cluster.nodes.volume_binder import BIND_TIMEOUT, VolumeBinder

__all__ = ["PODS", "PodReconciler"]

PODS: Final = kind_of(Pod)
_SCHEDULER: Final = "default-scheduler"
_NOTE_LIMIT: Final = 1024
_BINDING_TIMED_OUT: Final = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
_MAX_SYNCS: Final = 10
_RETRY_UNSCHEDULABLE: Final = 300.0


class PodReconciler(Reconciler[Unstructured]):
    """Schedules pods and advances their status with `sync_pod`.

    Pods of other nodes and of stopped nodes are left alone.
    """

    reconcile_terminating: ClassVar[bool] = True

    def __init__(
        self,
        nodes: Mapping[str, SimulatedNode],
        program: Program,
        scheduler_cache: SchedulerCache,
        volumes: VolumeBinder,
        *,
        clock: Clock,
        schedules: bool,
    ) -> None:
        self.runtime: PodRuntime | None = None  # runs some of the pods; the others are simulated
        self._nodes = nodes
        self._program = program
        self._scheduler_cache = scheduler_cache
        self._volumes = volumes
        self._clock = clock
        self._schedules = schedules

    async def reconcile(self, obj: Unstructured, ctx: Context) -> Result | None:
        """Bind a pod to a node, or advance it on the node that it has."""
        obj.update({"apiVersion": "v1", "kind": "Pod"})  # items of a list omit both
        node = obj["spec"].get("nodeName", "")
        if not node:
            return await self._schedule(obj, ctx) if self._schedules else None
        simulated = self._nodes.get(node)
        if simulated is None or simulated.down_since is not None or not self._scheduler_cache.has_node(node):
            return None
        try:
            return await self._advance(obj, simulated, ctx)
        except NotFound:
            return None  # it was deleted; its event is on the way
        except Conflict:
            return Result.requeue(reason="the pod was changed meanwhile")

    def gone(self, key: Key) -> None:
        """Kill what is left of a pod that no longer exists."""
        if self.runtime is not None:
            self.runtime.forget(key)

    # The scheduler

    async def _schedule(self, pod: Unstructured, ctx: Context) -> Result | None:
        spec = pod["spec"]
        other_scheduler = spec.get("schedulerName", _SCHEDULER) != _SCHEDULER
        if other_scheduler or "deletionTimestamp" in pod.metadata or spec.get("schedulingGates"):
            return None
        volumes = await self._volumes.read(pod, ctx)
        selected = self._select_node(pod, volumes)
        if isinstance(selected, Unschedulable):
            await self._report_unschedulable(pod, selected.message, ctx)
            return Result.requeue(_RETRY_UNSCHEDULABLE, reason="no node fits")
        waiting = await self._bind_volumes(pod, selected, volumes, ctx)
        if waiting is not None:
            return waiting
        try:
            await ctx.client.using(field_manager="kube-scheduler").write_subresource(
                pod, "binding", _binding(pod, selected)
            )
        except KonvergeError as error:
            self._scheduler_cache.forget(pod.uid)
            self._volumes.cancel(pod)
            if isinstance(error, NotFound | Conflict):
                return None  # it was deleted, or somebody else bound it: an event follows either way
            raise
        self._volumes.forget(pod.uid, pod.key)
        message = f"Successfully assigned {pod.key} to {selected}"
        ctx.event("Scheduled", message, action="Binding", reporter=_SCHEDULER)
        return None

    def _select_node(self, pod: Unstructured, volumes: PodVolumes | None) -> str | Unschedulable:
        """Select a node; a pod whose volumes are being bound keeps its node as long as that fits."""
        if self._volumes.selected_node(pod):
            timed_out = self._volumes.has_timed_out(pod)
            if not timed_out and self._still_fits(pod, volumes):
                return self._volumes.selected_node(pod)
            self._scheduler_cache.forget(pod.uid)
            self._volumes.cancel(pod)
            if timed_out:
                return Unschedulable(_BINDING_TIMED_OUT)
        info = ScheduledPod(pod.namespace, pod["spec"], pod.metadata.get("labels") or {}, volumes=volumes)
        return self._scheduler_cache.schedule(pod.uid, pod.key, info)

    def _still_fits(self, pod: Unstructured, volumes: PodVolumes | None) -> bool:
        node = self._scheduler_cache.node(self._volumes.selected_node(pod))
        if node is None or volumes is None or volumes.rejection:
            return False
        return not volumes.on_node(node).rejections

    async def _bind_volumes(
        self, pod: Unstructured, node: str, volumes: PodVolumes | None, ctx: Context
    ) -> Result | None:
        """Bind the volumes of a pod on its node; return how long to wait for that, None if all are bound."""
        info = self._scheduler_cache.node(node)
        if volumes is None or info is None:
            return None
        try:
            bound = await self._volumes.start(pod, info, volumes, ctx)
        except KonvergeError as error:
            self._scheduler_cache.forget(pod.uid)
            self._volumes.cancel(pod)
            if isinstance(error, NotFound | Conflict):
                return Result.requeue(reason="a claim or volume changed meanwhile")
            raise
        return None if bound else Result.requeue(BIND_TIMEOUT, reason="its volumes are being bound")

    async def _report_unschedulable(self, pod: Unstructured, message: str, ctx: Context) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        present = [one for one in (pod.get("status") or {}).get("conditions", ()) if one["type"] == "PodScheduled"]
        if present and all(present[0].get(name) == value for name, value in condition.items()):
            return
        now = format_time(utc_now(self._clock))
        since = present[0]["lastTransitionTime"] if present and present[0]["status"] == "False" else now
        generation = pod.metadata.get("generation", 1)
        written = {**condition, "lastTransitionTime": since, "observedGeneration": generation}
        patch = {"status": {"conditions": [written]}}
        client = ctx.client.using(field_manager="kube-scheduler")
        await client.patch(PODS, pod.key, patch, patch_type="strategic", subresource="status")
        ctx.event("FailedScheduling", _truncate(message), warning=True, action="Scheduling", reporter=_SCHEDULER)

    # The kubelet

    async def _advance(self, pod: Unstructured, node: SimulatedNode, ctx: Context) -> Result | None:
        sync_next = self._sync_function(pod, node, ctx)
        for _ in range(_MAX_SYNCS):
            sync = await sync_next(pod)
            pod = await self._write(pod, sync, ctx)
            if sync.terminated:
                await ctx.client.delete(pod, grace_period=0, missing_ok=True)
                return None
            if sync.after is None:
                return None
            if sync.after > 0:
                return Result.requeue(sync.after, reason="the next status change is due")
        return Result.requeue(1.0, reason="its status keeps changing")

    def _sync_function(
        self, pod: Unstructured, node: SimulatedNode, ctx: Context
    ) -> Callable[[Unstructured], Awaitable[PodSync]]:
        """Return the function that computes the next status of a pod: of the runtime if that runs it, or simulated."""
        runtime = self.runtime
        if runtime is not None and runtime.runs(pod):
            addresses = self._allocate(pod, node, runtime.network(node))
            return lambda current: runtime.sync(current, node, addresses, ctx)
        addresses = self._addresses_of(pod, node)
        try:
            behavior = self._behaviors(pod)
        except ValueError as error:
            ctx.event("UnknownBehavior", str(error), warning=True, reporter="kubelet")
            raise TerminalError(f"invalid annotation of the pod: {error}") from error

        async def simulate(current: Unstructured) -> PodSync:
            return sync_pod(current, utc_now(self._clock), addresses, behavior)

        return simulate

    def _addresses_of(self, pod: Unstructured, node: SimulatedNode) -> PodAddresses:
        if pod["spec"].get("hostNetwork"):
            return PodAddresses(node.host, node.host)
        return self._allocate(pod, node, node.network)

    def _allocate(self, pod: Unstructured, node: SimulatedNode, network: IPv4Network) -> PodAddresses:
        allocations = self._scheduler_cache.allocations
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            allocations.add(pod.uid, pod.key, node.name, requests_of(pod["spec"]))
            return PodAddresses(node.host, allocations.address(pod.uid, network))
        return PodAddresses(node.host, pod["status"].get("podIP", ""))

    def _behaviors(self, pod: Unstructured) -> Callable[[Mapping[str, Any]], Behavior]:
        metadata, spec = pod.metadata, pod["spec"]
        info = PodInfo(pod.name, pod.namespace, metadata.get("labels") or {}, metadata.get("annotations") or {})
        containers = [*spec.get("initContainers", ()), *spec["containers"]]
        behaviors = {
            one["name"]: default_behavior(self._program.behavior_of(one["image"], one["name"], info), one, pod)
            for one in containers
        }
        return lambda container: behaviors[container["name"]]

    async def _write(self, pod: Unstructured, sync: PodSync, ctx: Context) -> Unstructured:
        before = _without_nulls(pod.get("status") or {})
        patch = merge_patch(before, sync.status)
        if patch:
            sent = {"metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version}, "status": patch}
            client = ctx.client.using(field_manager="kubelet")
            pod = await client.patch(PODS, pod.key, sent, subresource="status")
        for one in sync.events:
            ctx.event(one.reason, one.message, warning=one.warning, reporter="kubelet")
        return pod


def _binding(pod: Unstructured, node: str) -> dict[str, Any]:
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def _truncate(message: str) -> str:
    """Return a message that fits into an event, shortened as kube-scheduler does it."""
    return message if len(message) <= _NOTE_LIMIT else f"{message[: _NOTE_LIMIT - 4]} ..."


def _without_nulls(value: Any) -> Any:
    """Drop null values, such as the time of a probe that never ran: the server writes them explicitly."""
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value
