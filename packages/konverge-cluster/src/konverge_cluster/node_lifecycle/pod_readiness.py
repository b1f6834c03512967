"""Pods on nodes that are not ready are not ready either, whatever their last status says."""

from __future__ import annotations

from typing import Final

from konverge.controller import Controller, controller_for
from konverge.errors import NotFound
from konverge.k8s.core.v1 import Node, Pod
from konverge.objects import Key, to_wire
from konverge.reconcile import Context, Reconciler, Result
from konverge.triggers import field_changed
from konverge_cluster.clock import Clock, truncate_to_seconds, utc_now
from konverge_cluster.node_lifecycle.health import ready_status
from konverge_cluster.status_writes import patch_pod_status

__all__ = ["NODE_CONTROLLER", "mark_not_ready", "pod_readiness_controller"]

NODE_CONTROLLER: Final = "node-controller"
"""The component in the events of this controller."""


async def mark_not_ready(pod: Pod, clock: Clock, ctx: Context) -> None:
    """Set the Ready condition of a pod to False, if it is not."""
    condition = next((one for one in pod.status.conditions if one.type == "Ready"), None)
    if condition is None or condition.status == "False":
        return
    since = to_wire(truncate_to_seconds(utc_now(clock)))
    try:
        unready = {"type": "Ready", "status": "False", "lastTransitionTime": since}
        await patch_pod_status(ctx, pod, condition=unready)
    except NotFound:
        return
    ctx.event("NodeNotReady", "Node is not ready", warning=True, regarding=pod, reporter=NODE_CONTROLLER)


class PodReadinessReconciler(Reconciler[Pod]):
    """Marks a pod that is assigned to a node which is not ready."""

    reconcile_terminating = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def reconcile(self, obj: Pod, ctx: Context) -> Result | None:
        """Mark a pod as not ready if its node is not."""
        node = await ctx.get(Node, Key("", obj.spec.node_name)) if obj.spec.node_name else None
        if node is not None and ready_status(node) not in ("True", ""):
            await mark_not_ready(obj, self._clock, ctx)
        return Result.done()


def pod_readiness_controller(clock: Clock) -> Controller[Pod]:
    """Return the controller of pods that are assigned to a node."""
    builder = controller_for(Pod).named("node-pod-readiness").predicate(field_changed(".spec.nodeName"))
    builder.watches(Node, lambda _: ()).needs(Pod, "patch", subresource="status")
    return builder.build(PodReadinessReconciler(clock))
