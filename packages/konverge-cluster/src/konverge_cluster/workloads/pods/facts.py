"""Facts about pods that workload controllers need. Plain functions of the object."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from konverge.k8s.core.v1 import ContainerStatus, Pod, PodCondition
from konverge.objects import Resource

__all__ = [
    "finished_at",
    "is_active",
    "is_available",
    "is_being_deleted",
    "is_finished",
    "is_ready",
    "is_terminating",
    "ready_condition",
    "ready_since",
    "restarts",
    "sidecars",
    "until_available",
]

_FINISHED: Final = ("Succeeded", "Failed")


def is_being_deleted(obj: Resource) -> bool:
    """Report whether an object has a deletion timestamp."""
    return obj.metadata.deletion_timestamp is not None


def is_finished(pod: Pod) -> bool:
    """Report whether a pod has succeeded or failed."""
    return pod.status.phase in _FINISHED


def is_active(pod: Pod) -> bool:
    """Report whether a pod counts as a replica: it is neither finished nor being deleted."""
    return not is_finished(pod) and not is_being_deleted(pod)


def is_terminating(pod: Pod) -> bool:
    """Report whether a pod is being deleted and not finished."""
    return not is_finished(pod) and is_being_deleted(pod)


def ready_condition(pod: Pod) -> PodCondition | None:
    """Return the Ready condition of a pod."""
    return next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)


def is_ready(pod: Pod) -> bool:
    """Report whether a pod is ready."""
    condition = ready_condition(pod)
    return condition is not None and condition.status == "True"


def ready_since(pod: Pod) -> datetime | None:
    """Return since when a pod is ready; None if it is not, or without a transition time."""
    condition = ready_condition(pod)
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def is_available(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Report whether a pod has been ready for at least `min_ready_seconds`."""
    if not is_ready(pod) or not min_ready_seconds:
        return is_ready(pod)
    since = ready_since(pod)
    return since is not None and since + timedelta(seconds=min_ready_seconds) <= now


def until_available(pods: Iterable[Pod], min_ready_seconds: int, now: datetime) -> float | None:
    """Return in how many seconds the next of these pods becomes available; None if none will by time alone."""
    delays = [
        (since + timedelta(seconds=min_ready_seconds) - now).total_seconds()
        for pod in pods
        if (since := ready_since(pod)) is not None
    ]
    return min((delay for delay in delays if delay > 0), default=None)


def restarts(pod: Pod) -> tuple[int, int]:
    """Return the highest restart count of a container, and of a sidecar."""
    sidecar_names = sidecars(pod)
    regular = [status.restart_count for status in pod.status.container_statuses]
    sidecar_restarts = [
        status.restart_count for status in pod.status.init_container_statuses if status.name in sidecar_names
    ]
    return max(regular, default=0), max(sidecar_restarts, default=0)


def sidecars(pod: Pod) -> set[str]:
    """Return the names of init containers that run beside the others."""
    return {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}


def finished_at(pod: Pod) -> datetime:
    """Return the best estimate of when a pod finished.

    The end of its last container; else when it ceased to be ready; else when it was deleted; else when it was created.
    """
    finished = _containers_finished(pod)
    if finished is not None:
        return finished
    condition = ready_condition(pod)
    if condition is not None and condition.status == "False" and condition.last_transition_time is not None:
        return condition.last_transition_time
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        return metadata.deletion_timestamp - timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
    assert metadata.creation_timestamp is not None
    return metadata.creation_timestamp


def _containers_finished(pod: Pod) -> datetime | None:
    sidecar_names = sidecars(pod)
    statuses = [*pod.status.container_statuses]
    statuses += [status for status in pod.status.init_container_statuses if status.name in sidecar_names]
    ends = [_container_finished(status) for status in statuses]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def _container_finished(status: ContainerStatus) -> datetime | None:
    terminated = status.state.terminated if status.state is not None else None
    return terminated.finished_at if terminated is not None else None
