"""One sync of a StatefulSet.

1. Replicas are created and repaired, from the lowest ordinal to the highest.
2. Condemned pods are deleted, from the highest ordinal to the lowest.
3. Pods are updated, from the highest ordinal to the partition.

With the policy OrderedReady each step waits until the pods before it are running, ready and available. With Parallel
nothing waits, except updates. The status is written at the end, also after an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar

from konverge.errors import KonvergeError
from konverge.k8s.apps.v1 import StatefulSet, StatefulSetStatus
from konverge.k8s.core.v1 import Pod
from konverge.reconcile import Context
from konverge_cluster.status_writes import write_status
from konverge_cluster.workloads.pods.batches import slow_start
from konverge_cluster.workloads.pods.facts import is_being_deleted, is_finished
from konverge_cluster.workloads.stateful_sets.history import History
from konverge_cluster.workloads.stateful_sets.identity import new_stateful_pod, revision_of
from konverge_cluster.workloads.stateful_sets.ordinals import condemned_pods, ordinal_of, ordinals
from konverge_cluster.workloads.stateful_sets.pod_control import StatefulPodControl
from konverge_cluster.workloads.stateful_sets.revisions import Revisions, revisions_to_delete, template_of
from konverge_cluster.workloads.stateful_sets.rolling import partition_of, pods_to_update
from konverge_cluster.workloads.stateful_sets.status import (
    is_created,
    is_running_and_ready,
    is_unavailable,
    same_status,
    status_of,
)

__all__ = ["Sync", "replicas_of"]

A = TypeVar("A")


class Sync:
    """One sync. Decisions are plain functions; writes go through `StatefulPodControl` and `History`."""

    def __init__(self, stateful_set: StatefulSet, pods: Sequence[Pod], *, ctx: Context, now: datetime) -> None:
        self._stateful_set = stateful_set
        self._pods = pods
        self._ctx = ctx
        self._now = now
        self._ordered = stateful_set.spec.pod_management_policy != "Parallel"
        self._control = StatefulPodControl(stateful_set, ctx, now)
        self._replicas: list[Pod] = []
        self._condemned: list[Pod] = []

    async def run(self) -> StatefulSetStatus:
        """Run the sync; return the status.

        Raises: KonvergeError when a request failed, after the status was written.
        """
        history = History(self._stateful_set, self._ctx)
        await history.load()
        if is_being_deleted(self._stateful_set):
            return await self._write_status(self._pods, history.last_revisions())  # it changes nothing else
        revisions = await history.sync_revisions()
        self._replicas = replicas_of(self._stateful_set, self._pods, revisions)
        self._condemned = condemned_pods(self._stateful_set, self._pods)
        failure: KonvergeError | None = None
        try:
            await self._act(revisions)
        except KonvergeError as error:
            failure = error
        status = await self._write_status([*self._replicas, *self._condemned], revisions)
        in_use = {status.current_revision or "", status.update_revision or "", *map(revision_of, self._pods)}
        await history.delete(revisions_to_delete(self._stateful_set, history.revisions, in_use))
        if failure is not None:
            raise failure
        return status

    async def _act(self, revisions: Revisions) -> None:
        if not await self._run_for_all(range(len(self._replicas)), self._process_replica):
            return
        for pod in self._condemned:
            await self._control.restore_retention_policy(pod)
        if not await self._run_for_all(self._condemned, self._remove):
            return
        for pod in pods_to_update(self._stateful_set, self._replicas, revisions.update.name, self._now):
            await self._control.delete(pod)

    async def _run_for_all(self, items: Sequence[A], step: Callable[[A], Awaitable[bool]]) -> bool:
        """Run a step for all items; report whether the sync goes on. In order, the first that must wait is the last."""
        if not self._ordered:
            batches = await slow_start(items, step)
            if batches.failed:
                raise batches.failed[0]
            return True
        for item in items:
            if not await step(item):
                return False
        return True

    async def _process_replica(self, index: int) -> bool:
        """Create, replace or repair the pod at an index; report whether the next one may follow."""
        pod = self._replicas[index]
        if is_finished(pod):
            if not is_being_deleted(pod):
                await self._control.delete(pod)
            return False
        if not is_created(pod):
            if not await self._control.has_stale_claim(pod):
                self._replicas[index] = await self._control.create(pod)
            return False
        if pod.status.phase == "Pending":
            await self._control.create_missing_claims(pod)
        if self._ordered and not self._is_healthy(pod):
            return False
        self._replicas[index] = await self._control.update(pod)
        return True

    async def _remove(self, pod: Pod) -> bool:
        """Delete a condemned pod; report whether the next one may follow.

        In order, an unhealthy pod is deleted only if all condemned pods with lower ordinals are available.
        """
        if is_being_deleted(pod):
            return False
        if self._ordered and not self._is_healthy(pod) and pod is not self._lowest_unavailable():
            return False
        await self._control.delete(pod)
        return False

    def _lowest_unavailable(self) -> Pod | None:
        """Return the unavailable condemned pod with the lowest ordinal."""
        unavailable = [pod for pod in self._condemned if is_unavailable(self._stateful_set, pod, self._now)]
        return unavailable[-1] if unavailable else None

    def _is_healthy(self, pod: Pod) -> bool:
        return is_running_and_ready(pod) and not is_unavailable(self._stateful_set, pod, self._now)

    async def _write_status(self, pods: Sequence[Pod], revisions: Revisions) -> StatefulSetStatus:
        status = status_of(self._stateful_set, pods, revisions=revisions, now=self._now)
        if not same_status(status, self._stateful_set.status):
            await write_status(self._ctx, self._stateful_set, status)
        return status


def replicas_of(stateful_set: StatefulSet, pods: Sequence[Pod], revisions: Revisions) -> list[Pod]:
    """Return the desired pods by ordinal; new ones below the partition are of the current revision."""
    by_ordinal = {ordinal_of(pod): pod for pod in pods}
    return [
        by_ordinal[ordinal] if ordinal in by_ordinal else _new_replica(stateful_set, ordinal, revisions)
        for ordinal in ordinals(stateful_set)
    ]


def _new_replica(stateful_set: StatefulSet, ordinal: int, revisions: Revisions) -> Pod:
    """Return a new pod; the template of the update revision is that of the StatefulSet."""
    start = ordinals(stateful_set).start
    if ordinal >= start + partition_of(stateful_set) or revisions.current.name == revisions.update.name:
        return new_stateful_pod(stateful_set, stateful_set.spec.template, ordinal, revision=revisions.update.name)
    return new_stateful_pod(stateful_set, template_of(revisions.current), ordinal, revision=revisions.current.name)
