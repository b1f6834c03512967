"""The controller of ReplicaSets: creates pods while there are too few, deletes pods while there are too many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from konverge.cache import Event
from konverge.controller import Controller, controller_for
from konverge.errors import KonvergeError
from konverge.k8s.apps.v1 import ReplicaSet
from konverge.k8s.core.v1 import Pod
from konverge.objects import Key, LabelSelector
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.clock import Clock, utc_now
from konverge_cluster.server_messages import server_message
from konverge_cluster.status_writes import write_status
from konverge_cluster.workloads.pods.batches import BatchResult, run_all, slow_start
from konverge_cluster.workloads.pods.claims import controller_of
from konverge_cluster.workloads.pods.control import PodControl
from konverge_cluster.workloads.pods.controller_refs import claim_objects
from konverge_cluster.workloads.pods.deletion_order import pods_to_delete
from konverge_cluster.workloads.pods.facts import is_active, is_being_deleted, is_terminating, until_available
from konverge_cluster.workloads.pods.orphans import to_matching_owners
from konverge_cluster.workloads.pods.refused_writes import retry_refused
from konverge_cluster.workloads.pods.selector_index import SelectorIndex
from konverge_cluster.workloads.pods.templates import new_pod
from konverge_cluster.workloads.replica_sets.status import Failure, status_of

__all__ = ["ReplicaSetReconciler", "replica_set_controller"]

_MAX_BURST: Final = 500


class ReplicaSetReconciler(Reconciler[ReplicaSet]):
    """Maintains the desired number of pods of a ReplicaSet, and its status.

    Pods are created in batches that double, and deleted in the order of `pods.deletion_order`. The status counts the
    pods afterwards. A failure is written to the status first; then it is retried.
    """

    reconcile_terminating: ClassVar[bool] = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._selectors = SelectorIndex()

    def map_orphan(self, event: Event) -> Iterable[Key]:
        """Map a pod without a controller to the ReplicaSets that select it."""
        return to_matching_owners(self._selectors, event)

    def gone(self, key: Key) -> None:
        """Forget the selector of a ReplicaSet."""
        self._selectors.drop(key)

    async def reconcile(self, obj: ReplicaSet, ctx: Context) -> Result | None:
        """Create or delete pods of a ReplicaSet as needed, and write its status."""
        selector = LabelSelector.from_spec(obj.spec.selector)
        self._selectors.put(obj.key, selector)
        pods = await claim_objects(obj, Pod, selector=selector, ctx=ctx, predicate=is_active)
        error: KonvergeError | None = None
        missing = abs(len(pods) - _replicas(obj))
        if not is_being_deleted(obj):
            pods, error = await self._manage(obj, pods, ctx)
        terminating = sum(is_terminating(pod) and selector.matches(pod.metadata.labels) for pod in ctx.owned(Pod))
        now = utc_now(self._clock)
        failure = _failure(obj, pods, error)
        status = status_of(obj, pods, terminating=terminating, failure=failure, now=now)
        await write_status(ctx, obj, status)
        if error is not None:
            return retry_refused(error)
        if missing > _MAX_BURST:
            return Result.requeue(reason="more pods than one burst")
        wait = until_available(pods, obj.spec.min_ready_seconds or 0, now)
        return Result.done() if wait is None else Result.requeue(wait, reason="a pod becomes available")

    async def _manage(self, obj: ReplicaSet, pods: list[Pod], ctx: Context) -> tuple[list[Pod], KonvergeError | None]:
        surplus = len(pods) - _replicas(obj)
        if surplus < 0:
            created = await self._create(obj, min(-surplus, _MAX_BURST), ctx)
            return pods + [pod for pod in created.done if pod is not None], _first(created.failed)
        if surplus > 0:
            deleted = await self._remove(obj, pods, min(surplus, _MAX_BURST), ctx)
            deleted_uids = {pod.uid for pod in deleted.done}
            return [pod for pod in pods if pod.uid not in deleted_uids], _first(deleted.failed)
        return pods, None

    async def _create(self, obj: ReplicaSet, count: int, ctx: Context) -> BatchResult[Pod | None]:
        control = PodControl(ctx)
        new_pods = [new_pod(obj.spec.template, obj) for _ in range(count)]
        return await slow_start(new_pods, control.create)

    async def _remove(self, obj: ReplicaSet, pods: Sequence[Pod], count: int, ctx: Context) -> BatchResult[Pod]:
        related = await _related_pods(obj, ctx) if count < len(pods) else ()
        selected = pods_to_delete(pods, count, related=related, now=utc_now(self._clock))
        return await run_all(selected, PodControl(ctx).delete)


def replica_set_controller(clock: Clock) -> Controller[ReplicaSet]:
    """Return the controller of ReplicaSets."""
    reconciler = ReplicaSetReconciler(clock)
    builder = controller_for(ReplicaSet).named("replicaset-controller").owns(Pod).watches(Pod, reconciler.map_orphan)
    return builder.build(reconciler)


async def _related_pods(obj: ReplicaSet, ctx: Context) -> list[Pod]:
    """Return the pods selected by the ReplicaSets with the same controller, this one included."""
    owner = controller_of(obj)
    siblings = [obj] if owner is None else ctx.cache.lister(ReplicaSet).owned_by(owner.uid)
    found: dict[str, Pod] = {}
    for sibling in siblings:
        selected = await ctx.list(Pod, labels=str(LabelSelector.from_spec(sibling.spec.selector)))
        found |= {pod.uid: pod for pod in selected}
    return list(found.values())


def _failure(obj: ReplicaSet, pods: Sequence[Pod], error: KonvergeError | None) -> Failure | None:
    if error is None:
        return None
    if len(pods) < _replicas(obj):
        return Failure("FailedCreate", server_message(error))
    return Failure("FailedDelete", f"unable to delete pods: {server_message(error)}")


def _replicas(obj: ReplicaSet) -> int:
    return 1 if obj.spec.replicas is None else obj.spec.replicas


def _first(errors: Sequence[KonvergeError]) -> KonvergeError | None:
    return errors[0] if errors else None
