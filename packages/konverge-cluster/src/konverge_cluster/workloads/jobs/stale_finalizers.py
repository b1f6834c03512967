"""Pods that no Job counts any more: their finalizer would hold them for ever, so it goes.

A pod is left over when its Job is gone or finished, or when it has no controller at all.
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
from konverge_cluster.workloads.jobs.run import RELEASE
from konverge_cluster.workloads.jobs.tallies import TRACKING, is_tracked
from konverge_cluster.workloads.pods.claims import controller_of

__all__ = ["LeftoverReconciler", "leftover_controller"]

_FINALIZER = TRACKING.encode()


class LeftoverReconciler(Reconciler[Pod]):
    """Takes the tracking finalizer from pods that no Job counts."""

    reconcile_terminating = True

    def __init__(self) -> None:
        self._held: defaultdict[Key, set[Key]] = defaultdict(set)
        self._job_of: dict[Key, Key] = {}

    def pods_of(self, event: Event) -> Iterable[Key]:
        """Map a Job to its pods that wait for it."""
        return sorted(self._held.get(event.key, ()))

    def gone(self, key: Key) -> None:
        """Forget a pod."""
        job = self._job_of.pop(key, None)
        if job is not None:
            self._held[job].discard(key)
            if not self._held[job]:
                del self._held[job]

    async def reconcile(self, obj: Pod, ctx: Context) -> Result | None:
        """Let a pod go if no Job will."""
        self.gone(obj.key)
        if not is_tracked(obj):
            return Result.done()
        job = await self._job(obj, ctx)
        if job is not None:
            self._job_of[obj.key] = job
            self._held[job].add(obj.key)
            return Result.done()
        try:
            await controller_client(ctx).patch(Pod, obj.key, RELEASE, patch_type="strategic")
        except NotFound:
            return Result.done()
        return Result.done()

    async def _job(self, pod: Pod, ctx: Context) -> Key | None:
        """Give the Job that will count a pod; one that is managed elsewhere counts too."""
        reference = controller_of(pod)
        if reference is None or reference.kind != "Job":
            return None
        job = await ctx.get(Job, reference.name)
        if job is None or job.uid != reference.uid or is_finished(job):
            return None
        return job.key


def leftover_controller() -> Controller[Pod]:
    """Give the controller of pods that no Job counts."""
    reconciler = LeftoverReconciler()
    builder = controller_for(Pod).named("job-pod-finalizers").predicate(Predicate(_is_held))
    return builder.watches(Job, reconciler.pods_of).build(reconciler)


def _is_held(event: Event) -> bool:
    """Tell whether an event is about a pod with the finalizer; the few bytes are looked for before all is read."""
    return any(entry is not None and _FINALIZER in entry.json for entry in (event.old, event.new))
