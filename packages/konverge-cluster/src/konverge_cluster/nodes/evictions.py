"""Deletion of pods that cannot stay: their node has a NoExecute taint, is unreachable, or no longer exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from konverge.errors import NotFound
from konverge.k8s.core.v1 import Pod
from konverge.objects import Unstructured, kind_of
from konverge.reconcile import Context
from konverge_cluster.nodes.container_states import format_time
from konverge_cluster.nodes.scheduling.taints import tolerates_taint

__all__ = ["delete_orphan", "evict", "mark_not_ready", "toleration_seconds"]

_MANAGER: Final = "kube-controller-manager"
_PODS: Final = kind_of(Pod)


def toleration_seconds(tolerations: Iterable[Mapping[str, Any]], taints: Iterable[Mapping[str, Any]]) -> float | None:
    """Return how many seconds a pod tolerates these NoExecute taints; None for ever."""
    tolerations = list(tolerations)
    limits = []
    for taint in taints:
        matching = [one for one in tolerations if tolerates_taint([one], taint)]
        if not matching:
            return 0.0
        if "tolerationSeconds" in matching[0]:
            limits.append(max(0.0, float(matching[0]["tolerationSeconds"])))
    return min(limits, default=None)


async def evict(
    pods: Iterable[Unstructured], taints: Sequence[Mapping[str, Any]], ctx: Context, *, since: datetime, now: datetime
) -> float | None:
    """Delete the pods that no longer tolerate these taints; return seconds until the next check, None for never."""
    delays = []
    for pod in pods:
        limit = toleration_seconds(pod["spec"].get("tolerations", ()), taints)
        if limit is None or "deletionTimestamp" in pod.metadata:
            continue
        left = (since + timedelta(seconds=limit) - now).total_seconds()
        if left > 0:
            delays.append(left)
            continue
        message = f"Marking for deletion Pod {pod.key}"
        ctx.event("TaintManagerEviction", message, regarding=_with_kind(pod), reporter="taint-eviction-controller")
        disruption = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
        await _patch(pod, {"conditions": [_disruption_target(pod, *disruption, now=now)]}, ctx)
        await ctx.client.delete(_with_kind(pod), missing_ok=True)
    return min(delays, default=None)


async def delete_orphan(pod: Unstructured, ctx: Context, *, now: datetime) -> None:
    """Delete a pod whose node no longer exists: no kubelet will terminate it."""
    condition = _disruption_target(pod, "DeletionByPodGC", "PodGC: node no longer exists", now=now)
    status: dict[str, Any] = {"conditions": [condition]}
    if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
        status["phase"] = "Failed"
    await _patch(pod, status, ctx)
    await ctx.client.delete(_with_kind(pod), grace_period=0, missing_ok=True)


async def mark_not_ready(pod: Unstructured, ctx: Context, *, now: datetime) -> None:
    """Set the Ready condition of a pod to False if it was True, since its state is unknown."""
    conditions = (pod.get("status") or {}).get("conditions", ())
    if any(one["type"] == "Ready" and one["status"] == "True" for one in conditions):
        unready = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(now)}
        await _patch(pod, {"conditions": [unready]}, ctx)
        ctx.event(
            "NodeNotReady", "Node is not ready", warning=True, regarding=_with_kind(pod), reporter="node-controller"
        )


def _disruption_target(pod: Unstructured, reason: str, message: str, *, now: datetime) -> dict[str, Any]:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    return {
        **condition,
        "lastTransitionTime": format_time(now),
        "observedGeneration": pod.metadata.get("generation", 1),
    }


async def _patch(pod: Unstructured, status: dict[str, Any], ctx: Context) -> None:
    client = ctx.client.using(field_manager=_MANAGER)
    try:
        await client.patch(_PODS, pod.key, {"status": status}, patch_type="strategic", subresource="status")
    except NotFound:
        return


def _with_kind(pod: Unstructured) -> Unstructured:
    """Return an item of a list with its kind and apiVersion."""
    return Unstructured({**pod, "apiVersion": "v1", "kind": "Pod"})
