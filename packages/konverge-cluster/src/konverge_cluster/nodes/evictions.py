"""Pods that cannot stay where they are: their node keeps them out, cannot be reached, or is no longer there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from konverge.errors import NotFound
from konverge.k8s.core.v1 import Pod
from konverge.objects import Unstructured, kind_of
from konverge.reconcile import Context
from konverge_cluster.nodes.container_states import format_time
from konverge_cluster.nodes.scheduler import tolerates_taint

__all__ = ["delete_orphan", "evict", "mark_not_ready", "toleration_seconds"]

_MANAGER: Final = "kube-controller-manager"
_PODS: Final = kind_of(Pod)


def toleration_seconds(tolerations: Iterable[Mapping[str, Any]], taints: Iterable[Mapping[str, Any]]) -> float | None:
    """Give how many seconds a pod stays on a node with these taints of effect NoExecute; None for ever."""
    tolerations = list(tolerations)
    limits = []
    for taint in taints:
        fitting = [one for one in tolerations if tolerates_taint(taint, [one])]
        if not fitting:
            return 0.0
        if "tolerationSeconds" in fitting[0]:
            limits.append(max(0.0, float(fitting[0]["tolerationSeconds"])))
    return min(limits, default=None)


async def evict(
    pods: Iterable[Unstructured], taints: Sequence[Mapping[str, Any]], ctx: Context, *, since: datetime, now: datetime
) -> float | None:
    """Delete the pods whose toleration_seconds with these taints is over; give when to look again, None for never."""
    waits = []
    for pod in pods:
        limit = toleration_seconds(pod["spec"].get("tolerations", ()), taints)
        if limit is None or "deletionTimestamp" in pod.metadata:
            continue
        left = (since + timedelta(seconds=limit) - now).total_seconds()
        if left > 0:
            waits.append(left)
            continue
        words = f"Marking for deletion Pod {pod.key}"
        ctx.event("TaintManagerEviction", words, about=_named(pod), reporter="taint-eviction-controller")
        why = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
        await _patch(pod, {"conditions": [_disrupted(pod, *why, now=now)]}, ctx)
        await ctx.client.delete(_named(pod), missing_ok=True)
    return min(waits, default=None)


async def delete_orphan(pod: Unstructured, ctx: Context, *, now: datetime) -> None:
    """Remove a pod whose node is no longer there: nobody will end it."""
    condition = _disrupted(pod, "DeletionByPodGC", "PodGC: node no longer exists", now=now)
    status: dict[str, Any] = {"conditions": [condition]}
    if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
        status["phase"] = "Failed"
    await _patch(pod, status, ctx)
    await ctx.client.delete(_named(pod), grace_period=0, missing_ok=True)


async def mark_not_ready(pod: Unstructured, ctx: Context, *, now: datetime) -> None:
    """Say of a pod that it is not ready, if it was, since nobody knows."""
    conditions = (pod.get("status") or {}).get("conditions", ())
    if any(one["type"] == "Ready" and one["status"] == "True" for one in conditions):
        unready = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(now)}
        await _patch(pod, {"conditions": [unready]}, ctx)
        ctx.event("NodeNotReady", "Node is not ready", warning=True, about=_named(pod), reporter="node-controller")


def _disrupted(pod: Unstructured, reason: str, message: str, *, now: datetime) -> dict[str, Any]:
    said = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    return {**said, "lastTransitionTime": format_time(now), "observedGeneration": pod.metadata.get("generation", 1)}


async def _patch(pod: Unstructured, status: dict[str, Any], ctx: Context) -> None:
    client = ctx.client.using(field_manager=_MANAGER)
    try:
        await client.patch(_PODS, pod.key, {"status": status}, patch_type="strategic", subresource="status")
    except NotFound:
        return


def _named(pod: Unstructured) -> Unstructured:
    """Say of an object of a list what it is."""
    return Unstructured({**pod, "apiVersion": "v1", "kind": "Pod"})
