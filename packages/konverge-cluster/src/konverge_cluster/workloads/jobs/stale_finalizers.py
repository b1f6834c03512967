"""Removal of stale job-tracking finalizers: they would block the deletion of pods that no Job counts any more.

A finalizer is stale when the pod's Job is gone or finished, or when the pod has no controller.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from konverge.cache import Event
from konverge.controller import Controller, controller_for
from konverge.errors import NotFound
from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Pod
from konverge.objects import Key
from konverge.reconcile import Context, Reconciler, Result
from konverge.triggers import Predicate
from konverge_cluster.status_writes import controller_client
from konverge_cluster.workloads.jobs.conditions import is_finished
from konverge_cluster.workloads.jobs.pod_counts import TRACKING, is_tracked
from konverge_cluster.workloads.jobs.sync import REMOVE_FINALIZER
from konverge_cluster.workloads.pods.claims import controller_of

__all__ = ["StaleFinalizerReconciler", "stale_finalizer_controller"]

_FINALIZER = TRACKING.encode()


class StaleFinalizerReconciler(Reconciler[Pod]):
    """Removes the tracking finalizer from pods that no Job counts."""

    reconcile_terminating = True

    def __init__(self) -> None:
        self._tracked: defaultdict[Key, set[Key]] = defaultdict(set)
        self._job_of: dict[Key, Key] = {}

    def pods_of(self, event: Event) -> Iterable[Key]:
        """Map a Job to its pods that still have the finalizer."""
        return sorted(self._tracked.get(event.key, ()))

    def gone(self, key: Key) -> None:
        """Forget a pod."""
        job = self._job_of.pop(key, None)
        if job is not None:
            self._tracked[job].discard(key)
            if not self._tracked[job]:
                del self._tracked[job]

    async def reconcile(self, obj: Pod, ctx: Context) -> Result | None:
        """Remove the finalizer of a pod if no Job will."""
        self.gone(obj.key)
        if not is_tracked(obj):
            return Result.done()
        job = await self._job(obj, ctx)
        if job is not None:
            self._job_of[obj.key] = job
            self._tracked[job].add(obj.key)
            return Result.done()
        try:
            await controller_client(ctx).patch(Pod, obj.key, REMOVE_FINALIZER, patch_type="strategic")
        except NotFound:
            return Result.done()
        return Result.done()

    async def _job(self, pod: Pod, ctx: Context) -> Key | None:
        """Return the Job that will count a pod; one that is managed elsewhere counts too."""
        reference = controller_of(pod)
        if reference is None or reference.kind != "Job":
            return None
        job = await ctx.get(Job, reference.name)
        if job is None or job.uid != reference.uid or is_finished(job):
            return None
        return job.key


def stale_finalizer_controller() -> Controller[Pod]:
    """Return the controller that removes stale job-tracking finalizers."""
    reconciler = StaleFinalizerReconciler()
    builder = controller_for(Pod).named("job-pod-finalizers").predicate(Predicate(_has_finalizer))
    return builder.watches(Job, reconciler.pods_of).build(reconciler)


def _has_finalizer(event: Event) -> bool:
    """Report whether an event is about a pod with the finalizer; a search in the bytes is cheaper than decoding."""
    return any(entry is not None and _FINALIZER in entry.json for entry in (event.old, event.new))
