"""Reset of stale DisruptionTarget conditions: a pod that was to be disrupted and is still not being deleted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from konverge.cache import Event
from konverge.controller import Controller, controller_for
from konverge.errors import NotFound
from konverge.k8s.core.v1 import Pod
from konverge.objects import to_wire
from konverge.reconcile import Context, Reconciler, Result
from konverge.triggers import Predicate
from konverge_cluster.clock import Clock, truncate_to_seconds, utc_now
from konverge_cluster.status_writes import controller_client
from konverge_cluster.workloads.pods.facts import is_being_deleted, is_finished

__all__ = ["StaleConditionReconciler", "stale_condition_controller", "until_stale"]

_TYPE: Final = "DisruptionTarget"
_BY_KUBELET: Final = "TerminationByKubelet"
_TIMEOUT: Final = timedelta(minutes=2)
_BYTES: Final = _TYPE.encode()


class StaleConditionReconciler(Reconciler[Pod]):
    """Sets DisruptionTarget to False two minutes after it became True, unless the pod is being deleted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def reconcile(self, obj: Pod, ctx: Context) -> Result | None:
        """Reset the condition of a pod when it is due."""
        now = utc_now(self._clock)
        wait = until_stale(obj, now)
        if wait is None:
            return Result.done()
        if wait > 0:
            return Result.requeue(wait, reason="its DisruptionTarget condition becomes stale")
        condition = {"type": _TYPE, "status": "False", "reason": None, "message": None}
        changed = {**condition, "lastTransitionTime": to_wire(truncate_to_seconds(now))}
        patch = {"metadata": {"uid": obj.uid}, "status": {"conditions": [changed]}}
        try:
            await controller_client(ctx).patch(Pod, obj.key, patch, patch_type="strategic", subresource="status")
        except NotFound:
            return Result.done()
        return Result.done()


def until_stale(pod: Pod, now: datetime) -> float | None:
    """Return in how many seconds the condition of a pod is stale, 0 for now; None if it has none that can be."""
    if is_being_deleted(pod) or is_finished(pod):
        return None
    for one in pod.status.conditions:
        if one.type == _TYPE and one.status == "True" and one.reason != _BY_KUBELET:
            return max(((one.last_transition_time or now) + _TIMEOUT - now).total_seconds(), 0.0)
    return None


def stale_condition_controller(clock: Clock) -> Controller[Pod]:
    """Return the controller that resets stale DisruptionTarget conditions."""
    builder = controller_for(Pod).named("stale-pod-disruption").predicate(Predicate(_has_condition))
    return builder.needs(Pod, "patch", subresource="status").build(StaleConditionReconciler(clock))


def _has_condition(event: Event) -> bool:
    """Report whether a pod has the condition; a search in the bytes is cheaper than decoding."""
    return event.new is not None and _BYTES in event.new.json
