"""The controller of StatefulSets."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar

from konverge.cache import Event
from konverge.controller import Controller, controller_for
from konverge.errors import AlreadyExists, KonvergeError, NotFound
from konverge.k8s.apps.v1 import ControllerRevision, StatefulSet, StatefulSetStatus
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge.objects import Key, LabelSelector
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.clock import Clock, utc_now
from konverge_cluster.server_messages import is_namespace_terminating
from konverge_cluster.workloads.pods.controller_refs import claim_objects
from konverge_cluster.workloads.pods.facts import until_available
from konverge_cluster.workloads.pods.orphans import to_matching_owners
from konverge_cluster.workloads.pods.refused_writes import retry_refused
from konverge_cluster.workloads.pods.selector_index import SelectorIndex
from konverge_cluster.workloads.stateful_sets.ordinals import is_member
from konverge_cluster.workloads.stateful_sets.sync import Sync

__all__ = ["StatefulSetReconciler", "stateful_set_controller"]


class StatefulSetReconciler(Reconciler[StatefulSet]):
    """Maintains the pods of a StatefulSet, their claims, the revisions of its template, and its status."""

    reconcile_terminating: ClassVar[bool] = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._selectors = SelectorIndex()

    def map_orphan(self, event: Event) -> Iterable[Key]:
        """Map a pod or revision without a controller to the StatefulSets that select it."""
        return to_matching_owners(self._selectors, event)

    def map_deleted_claim(self, event: Event) -> Iterable[Key]:
        """Map a claim that is gone to the StatefulSets that select it: a pod may wait for that."""
        if event.new is not None or event.old is None:
            return ()
        labels = event.old.labels
        return self._selectors.matching(event.key.namespace, dict(zip(labels[::2], labels[1::2], strict=True)))

    def gone(self, key: Key) -> None:
        """Forget the selector of a StatefulSet."""
        self._selectors.drop(key)

    async def reconcile(self, obj: StatefulSet, ctx: Context) -> Result | None:
        """Create, update or delete pods as far as their order allows, and write the status."""
        selector = LabelSelector.from_spec(obj.spec.selector)
        self._selectors.put(obj.key, selector)
        now = utc_now(self._clock)
        try:
            pods = await claim_objects(obj, Pod, selector=selector, ctx=ctx, is_member=lambda pod: is_member(obj, pod))
            status = await Sync(obj, pods, ctx=ctx, now=now).run()
        except (AlreadyExists, NotFound) as error:
            return Result.requeue(reason=str(error))  # another client has created or deleted it
        except KonvergeError as error:
            if is_namespace_terminating(error):
                return Result.done()  # a retry cannot help
            return retry_refused(error)
        return _next_sync(obj, status, pods, now)


def stateful_set_controller(clock: Clock) -> Controller[StatefulSet]:
    """Return the controller of StatefulSets."""
    reconciler = StatefulSetReconciler(clock)
    builder = controller_for(StatefulSet).named("statefulset-controller")
    builder = builder.owns(Pod).watches(Pod, reconciler.map_orphan)
    builder = builder.owns(ControllerRevision).watches(ControllerRevision, reconciler.map_orphan)
    return builder.watches(PersistentVolumeClaim, reconciler.map_deleted_claim).build(reconciler)


def _next_sync(obj: StatefulSet, status: StatefulSetStatus, pods: Iterable[Pod], now: datetime) -> Result:
    seconds = obj.spec.min_ready_seconds or 0
    if seconds and (status.ready_replicas or 0) != status.available_replicas:
        wait = until_available(pods, seconds, now)
        return Result.requeue(seconds if wait is None else wait, reason="a pod becomes available")
    return Result.done()
