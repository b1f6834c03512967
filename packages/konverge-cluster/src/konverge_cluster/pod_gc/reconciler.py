"""The reconciler of pods that are to be collected.

Rules that hold here; a pod that is collected is marked as failed, unless it has finished, and deleted without grace:

1. A pod whose node does not exist for 40 s is collected, with a DisruptionTarget condition.
2. A pod that is being deleted and has no node is collected.
3. A pod that is being deleted on a node that is not ready and has the taint `out-of-service` is collected.
4. Of more than `threshold` finished pods the oldest are collected.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from konverge.controller import Controller, controller_for
from konverge.errors import NotFound
from konverge.k8s.core.v1 import Node, Pod
from konverge.objects import Key, to_wire
from konverge.reconcile import Context, Reconciler, Result
from konverge.triggers import deletion_started, field_changed
from konverge_cluster.clock import Clock, truncate_to_seconds, utc_now
from konverge_cluster.pod_gc.finished_pods import FinishedPods, is_finished
from konverge_cluster.pods_by_node import NODE_OF_POD, PODS_BY_NODE, to_pods_of_node
from konverge_cluster.status_writes import controller_client, patch_pod_status

__all__ = ["PodGcReconciler", "pod_gc_controller"]

_QUARANTINE: Final = 40.0
_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_THRESHOLD: Final = 12_500


class PodGcReconciler(Reconciler[Pod]):
    """Collects pods by the rules of this module."""

    reconcile_terminating = True

    def __init__(self, clock: Clock, threshold: int) -> None:
        self._clock = clock
        self._threshold = threshold
        self._finished = FinishedPods()
        self._missing: dict[str, datetime] = {}  # nodes that do not exist, and since when

    async def reconcile(self, obj: Pod, ctx: Context) -> Result | None:
        """Collect a pod that is due, and the oldest finished pods."""
        self._finished.put(obj)
        await self._collect_finished(ctx)
        deleted = obj.metadata.deletion_timestamp is not None
        if not obj.spec.node_name:
            if deleted:
                await self._collect(obj, ctx)
            return Result.done()
        node = await ctx.get(Node, Key("", obj.spec.node_name))
        if node is None:
            return await self._collect_orphan(obj, ctx)
        self._missing.pop(node.name, None)
        if deleted and _is_out_of_service(node):
            await self._collect(obj, ctx)
        return Result.done()

    def gone(self, key: Key) -> None:
        """Forget a pod."""
        self._finished.drop(key)

    async def _collect_finished(self, ctx: Context) -> None:
        if self._threshold <= 0:
            return
        for key in self._finished.oldest(self._threshold):
            pod = await ctx.get(Pod, key)
            if pod is not None and is_finished(pod):
                await self._collect(pod, ctx)
            self._finished.drop(key)

    async def _collect_orphan(self, pod: Pod, ctx: Context) -> Result | None:
        now = utc_now(self._clock)
        since = self._missing.setdefault(pod.spec.node_name or "", now)
        left = _QUARANTINE - (now - since).total_seconds()
        if left > 0:
            return Result.requeue(left, reason="its node may be created again")
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "lastTransitionTime": to_wire(truncate_to_seconds(now)),
            "observedGeneration": pod.metadata.generation,
        }
        await self._collect(pod, ctx, condition)
        return Result.done()

    async def _collect(self, pod: Pod, ctx: Context, condition: Mapping[str, Any] | None = None) -> None:
        if is_finished(pod) and pod.metadata.deletion_grace_period_seconds == 0:
            return  # it was collected; others have to remove their finalizers
        try:
            if not is_finished(pod):
                generation = pod.metadata.generation
                await patch_pod_status(ctx, pod, condition=condition, phase="Failed", observedGeneration=generation)
            await controller_client(ctx).delete(pod, grace_period=0, missing_ok=True)
        except NotFound:
            return


def _is_out_of_service(node: Node) -> bool:
    ready = any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
    return not ready and any(one.key == _OUT_OF_SERVICE for one in node.spec.taints)


def pod_gc_controller(clock: Clock, *, threshold: int = _THRESHOLD) -> Controller[Pod]:
    """Return the controller; `clock` is the wall clock of the cluster, in seconds.

    `threshold` is the number of finished pods that are kept, 0 for all.
    """
    builder = controller_for(Pod).named("pod-garbage-collector")
    builder.predicate(field_changed(".spec.nodeName") | field_changed(".status.phase") | deletion_started)
    builder.index(Pod, PODS_BY_NODE, NODE_OF_POD)
    changed = field_changed(".spec.taints") | field_changed(".status.conditions")
    builder.watches(Node, to_pods_of_node(), predicate=changed)
    return (
        builder.needs(Pod, "delete").needs(Pod, "patch", subresource="status").build(PodGcReconciler(clock, threshold))
    )
