"""The status of a StatefulSet, derived from its pods and revisions. Its controller sets no conditions."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import datetime

from konverge.k8s.apps.v1 import StatefulSet, StatefulSetStatus
from konverge.k8s.core.v1 import Pod
from konverge_cluster.workloads.pods.facts import is_available, is_being_deleted, is_ready
from konverge_cluster.workloads.stateful_sets.identity import revision_of
from konverge_cluster.workloads.stateful_sets.ordinals import replica_count
from konverge_cluster.workloads.stateful_sets.revisions import Revisions

__all__ = ["is_created", "is_running_and_ready", "is_unavailable", "same_status", "status_of"]


def is_created(pod: Pod) -> bool:
    """Report whether a pod exists on the server."""
    return bool(pod.status.phase)


def is_running_and_ready(pod: Pod) -> bool:
    """Report whether a pod is running and ready."""
    return pod.status.phase == "Running" and is_ready(pod)


def is_unavailable(stateful_set: StatefulSet, pod: Pod, now: datetime) -> bool:
    """Report whether a pod is not available, or is being deleted."""
    return is_being_deleted(pod) or not is_available(pod, stateful_set.spec.min_ready_seconds or 0, now)


def status_of(
    stateful_set: StatefulSet, pods: Sequence[Pod], *, revisions: Revisions, now: datetime
) -> StatefulSetStatus:
    """Return the status for these pods; counters that are omitted when zero are None.

    When all pods are ready and of the update revision, the rolling update is complete: it becomes the current one.
    """
    min_ready_seconds = stateful_set.spec.min_ready_seconds or 0
    ready = [pod for pod in pods if is_running_and_ready(pod)]
    in_use = [revision_of(pod) for pod in pods if is_created(pod) and not is_being_deleted(pod)]
    status = StatefulSetStatus(
        observed_generation=stateful_set.metadata.generation,
        replicas=sum(map(is_created, pods)),
        ready_replicas=len(ready) or None,
        available_replicas=sum(is_available(pod, min_ready_seconds, now) for pod in ready),
        current_replicas=in_use.count(revisions.current.name) or None,
        updated_replicas=in_use.count(revisions.update.name) or None,
        current_revision=revisions.current.name,
        update_revision=revisions.update.name,
        collision_count=revisions.collisions,
    )
    if _is_complete(stateful_set, status):
        status.current_replicas, status.current_revision = status.updated_replicas, status.update_revision
    return status


def same_status(one: StatefulSetStatus, other: StatefulSetStatus) -> bool:
    """Report whether two statuses are the same, except for conditions."""
    return _without_conditions(one) == _without_conditions(other)


def _without_conditions(status: StatefulSetStatus) -> StatefulSetStatus:
    bare = copy.copy(status)
    bare.conditions = []
    return bare


def _is_complete(stateful_set: StatefulSet, status: StatefulSetStatus) -> bool:
    strategy = stateful_set.spec.update_strategy
    if strategy is None or strategy.type != "RollingUpdate":
        return False
    counters = (status.updated_replicas, status.ready_replicas, status.replicas)
    return all((counter or 0) == replica_count(stateful_set) for counter in counters)
