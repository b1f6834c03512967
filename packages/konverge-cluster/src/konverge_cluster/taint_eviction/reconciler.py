"""The reconciler of pods on tainted nodes: deletes them when their tolerations end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from konverge.controller import Controller, controller_for
from konverge.errors import NotFound
from konverge.k8s.core.v1 import Node, Pod
from konverge.objects import Key, to_wire
from konverge.reconcile import Context, Reconciler, Result
from konverge.triggers import field_changed
from konverge_cluster.clock import Clock, truncate_to_seconds, utc_now
from konverge_cluster.pods_by_node import NODE_OF_POD, PODS_BY_NODE, to_pods_of_node
from konverge_cluster.status_writes import controller_client, patch_pod_status
from konverge_cluster.taint_eviction.tolerations import execute_taints, toleration_seconds

__all__ = ["TaintEvictionReconciler", "taint_eviction_controller"]

_REPORTER: Final = "taint-eviction-controller"
_EVENT: Final = "TaintManagerEviction"


@dataclass(frozen=True)
class _Eviction:
    """A scheduled eviction: since when the pod is tolerating taints, when that ends, and how to report its end."""

    uid: str
    since: datetime
    deadline: datetime
    cancelled: Callable[[], None]


class TaintEvictionReconciler(Reconciler[Pod]):
    """Deletes a pod as soon as it no longer tolerates the NoExecute taints of its node.

    Promises: the time of a toleration starts when the first taint appears, and does not start again with other taints.
    A scheduled deletion is cancelled when the taints or the pod are gone.
    """

    reconcile_terminating = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scheduled: dict[Key, _Eviction] = {}

    async def reconcile(self, obj: Pod, ctx: Context) -> Result | None:
        """Delete a pod, or schedule its deletion, or cancel that."""
        found = self._scheduled.get(obj.key)
        if found is not None and found.uid != obj.uid:
            self._cancel(obj.key)
        node = await ctx.get(Node, Key("", obj.spec.node_name)) if obj.spec.node_name else None
        taints = execute_taints(node.spec.taints) if node is not None else []
        if not taints:
            self._cancel(obj.key)
            return Result.done()
        seconds = toleration_seconds(obj.spec.tolerations, taints)
        if seconds is None or math.isinf(seconds):
            self._cancel(obj.key)
        if seconds is not None and math.isinf(seconds):
            return Result.done()
        left = self._schedule(obj, seconds, ctx) if seconds is not None else 0.0
        if left > 0:
            return Result.requeue(left, reason="its toleration ends")
        self._scheduled.pop(obj.key, None)
        await self._evict(obj, ctx)
        return Result.done()

    def gone(self, key: Key) -> None:
        """Cancel the scheduled deletion of a pod that no longer exists."""
        self._cancel(key)

    def _schedule(self, pod: Pod, seconds: float, ctx: Context) -> float:
        """Schedule a deletion, or keep the scheduled one; return the seconds that are left."""
        now = utc_now(self._clock)
        found = self._scheduled.get(pod.key)
        if found is None:
            message = f"Cancelling deletion of Pod {pod.key}"
            cancelled = partial(ctx.event, _EVENT, message, reporter=_REPORTER)
            found = _Eviction(pod.uid, now, now + timedelta(seconds=seconds), cancelled)
        self._scheduled[pod.key] = found
        return (found.deadline - now).total_seconds()

    def _cancel(self, key: Key) -> None:
        found = self._scheduled.pop(key, None)
        if found is not None:
            found.cancelled()

    async def _evict(self, pod: Pod, ctx: Context) -> None:
        ctx.event(_EVENT, f"Marking for deletion Pod {pod.key}", reporter=_REPORTER)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": to_wire(truncate_to_seconds(utc_now(self._clock))),
            "observedGeneration": pod.metadata.generation,
        }
        try:
            if not _has_condition(pod, condition):
                await patch_pod_status(ctx, pod, condition=condition)
            await controller_client(ctx).delete(pod, missing_ok=True)
        except NotFound:
            return


def _has_condition(pod: Pod, condition: Mapping[str, Any]) -> bool:
    fields = ("type", "status", "reason", "message")
    return any(all(getattr(one, name) == condition[name] for name in fields) for one in pod.status.conditions)


def taint_eviction_controller(clock: Clock) -> Controller[Pod]:
    """Return the controller of pods on tainted nodes; `clock` is the wall clock of the cluster, in seconds."""
    builder = controller_for(Pod).named(_REPORTER)
    builder.predicate(field_changed(".spec.nodeName") | field_changed(".spec.tolerations"))
    builder.index(Pod, PODS_BY_NODE, NODE_OF_POD)
    builder.watches(Node, to_pods_of_node(), predicate=field_changed(".spec.taints"))
    return builder.needs(Pod, "delete").needs(Pod, "patch", subresource="status").build(TaintEvictionReconciler(clock))
