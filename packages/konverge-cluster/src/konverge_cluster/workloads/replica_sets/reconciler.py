"""The controller of ReplicaSets: creates pods while there are too few, deletes some while there are too many."""

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
from konverge_cluster.workloads.pods.batches import Outcome, in_batches, together
from konverge_cluster.workloads.pods.claims import controller_of
from konverge_cluster.workloads.pods.control import PodControl
from konverge_cluster.workloads.pods.facts import is_active, is_being_deleted, is_terminating, until_available
from konverge_cluster.workloads.pods.holdings import hold
from konverge_cluster.workloads.pods.orphans import wanted_by
from konverge_cluster.workloads.pods.removal import to_remove
from konverge_cluster.workloads.pods.selections import Selections
from konverge_cluster.workloads.pods.templates import pod_of
from konverge_cluster.workloads.replica_sets.status import Failure, status_of

__all__ = ["ReplicaSetReconciler", "replica_set_controller"]

_MOST_AT_ONCE: Final = 500


class ReplicaSetReconciler(Reconciler[ReplicaSet]):
    """Keeps as many pods as a ReplicaSet asks for, and its status.

    Pods are created in batches that double, and deleted in the order of `pods.removal`. The status counts the pods as
    they are after that. A failure is written to the status first and raised then, so that it is tried again.
    """

    reconcile_terminating: ClassVar[bool] = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._selections = Selections()

    def wanting(self, event: Event) -> Iterable[Key]:
        """Map a pod without a controller to the ReplicaSets that select it."""
        return wanted_by(self._selections, event)

    def gone(self, key: Key) -> None:
        """Forget what a ReplicaSet selected."""
        self._selections.drop(key)

    async def reconcile(self, obj: ReplicaSet, ctx: Context) -> Result | None:
        """Bring the pods of a ReplicaSet to the number that it asks for, and write its status."""
        selector = LabelSelector.from_spec(obj.spec.selector)
        self._selections.put(obj.key, selector)
        pods = await hold(obj, Pod, selector=selector, ctx=ctx, among=is_active)
        problem: KonvergeError | None = None
        missing = abs(len(pods) - _replicas(obj))
        if not is_being_deleted(obj):
            pods, problem = await self._manage(obj, pods, ctx)
        terminating = sum(is_terminating(pod) and selector.matches(pod.metadata.labels) for pod in ctx.owned(Pod))
        now = utc_now(self._clock)
        failure = _failure(obj, pods, problem)
        status = status_of(obj, pods, terminating=terminating, failure=failure, now=now)
        await write_status(ctx, obj, status)
        if problem is not None:
            raise problem
        if missing > _MOST_AT_ONCE:
            return Result.requeue(reason="more pods than are made or removed at once")
        wait = until_available(pods, obj.spec.min_ready_seconds or 0, now)
        return Result.done() if wait is None else Result.requeue(wait, reason="a pod becomes available")

    async def _manage(self, obj: ReplicaSet, pods: list[Pod], ctx: Context) -> tuple[list[Pod], KonvergeError | None]:
        surplus = len(pods) - _replicas(obj)
        if surplus < 0:
            made = await self._create(obj, min(-surplus, _MOST_AT_ONCE), ctx)
            return pods + [pod for pod in made.done if pod is not None], _first(made.failed)
        if surplus > 0:
            removed = await self._remove(obj, pods, min(surplus, _MOST_AT_ONCE), ctx)
            gone = {pod.uid for pod in removed.done}
            return [pod for pod in pods if pod.uid not in gone], _first(removed.failed)
        return pods, None

    async def _create(self, obj: ReplicaSet, count: int, ctx: Context) -> Outcome[Pod | None]:
        control = PodControl(ctx)
        wanted = [pod_of(obj.spec.template, obj) for _ in range(count)]
        return await in_batches(wanted, control.create)

    async def _remove(self, obj: ReplicaSet, pods: Sequence[Pod], count: int, ctx: Context) -> Outcome[Pod]:
        family = await _family(obj, ctx) if count < len(pods) else ()
        chosen = to_remove(pods, count, family=family, now=utc_now(self._clock))
        return await together(chosen, PodControl(ctx).delete)


def replica_set_controller(clock: Clock) -> Controller[ReplicaSet]:
    """Give the controller of ReplicaSets."""
    reconciler = ReplicaSetReconciler(clock)
    builder = controller_for(ReplicaSet).named("replicaset-controller").owns(Pod).watches(Pod, reconciler.wanting)
    return builder.build(reconciler)


async def _family(obj: ReplicaSet, ctx: Context) -> list[Pod]:
    """Give the pods that are selected by the ReplicaSets with the same controller, this one included."""
    owner = controller_of(obj)
    siblings = [obj] if owner is None else ctx.cache.lister(ReplicaSet).owned_by(owner.uid)
    found: dict[str, Pod] = {}
    for sibling in siblings:
        selected = await ctx.list(Pod, labels=str(LabelSelector.from_spec(sibling.spec.selector)))
        found |= {pod.uid: pod for pod in selected}
    return list(found.values())


def _failure(obj: ReplicaSet, pods: Sequence[Pod], problem: KonvergeError | None) -> Failure | None:
    if problem is None:
        return None
    if len(pods) < _replicas(obj):
        return Failure("FailedCreate", server_message(problem))
    return Failure("FailedDelete", f"unable to delete pods: {server_message(problem)}")


def _replicas(obj: ReplicaSet) -> int:
    return 1 if obj.spec.replicas is None else obj.spec.replicas


def _first(errors: Sequence[KonvergeError]) -> KonvergeError | None:
    return errors[0] if errors else None
