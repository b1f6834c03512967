"""Facts about one pod, or a few, as the controllers of workloads ask for them. Plain functions of the object."""

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
    """Tell whether an object carries the mark of deletion."""
    return obj.metadata.deletion_timestamp is not None


def is_finished(pod: Pod) -> bool:
    """Tell whether a pod has run to its end, well or not."""
    return pod.status.phase in _FINISHED


def is_active(pod: Pod) -> bool:
    """Tell whether a pod counts as a replica: it is neither at its end nor on its way out."""
    return not is_finished(pod) and not is_being_deleted(pod)


def is_terminating(pod: Pod) -> bool:
    """Tell whether a pod is on its way out and still runs."""
    return not is_finished(pod) and is_being_deleted(pod)


def ready_condition(pod: Pod) -> PodCondition | None:
    """Give the condition that says whether a pod is ready."""
    return next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)


def is_ready(pod: Pod) -> bool:
    """Tell whether a pod is ready."""
    condition = ready_condition(pod)
    return condition is not None and condition.status == "True"


def ready_since(pod: Pod) -> datetime | None:
    """Say when a ready pod became ready; None for one that is not, or does not say."""
    condition = ready_condition(pod)
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def is_available(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Tell whether a pod has been ready for long enough."""
    if not is_ready(pod) or not min_ready_seconds:
        return is_ready(pod)
    since = ready_since(pod)
    return since is not None and since + timedelta(seconds=min_ready_seconds) <= now


def until_available(pods: Iterable[Pod], min_ready_seconds: int, now: datetime) -> float | None:
    """Say in how many seconds the next of these pods becomes available; None when none will by time alone."""
    waits = [
        (since + timedelta(seconds=min_ready_seconds) - now).total_seconds()
        for pod in pods
        if (since := ready_since(pod)) is not None
    ]
    return min((wait for wait in waits if wait > 0), default=None)


def restarts(pod: Pod) -> tuple[int, int]:
    """Give the most restarts of one container, and of one sidecar."""
    beside = sidecars(pod)
    regular = [status.restart_count for status in pod.status.container_statuses]
    helping = [status.restart_count for status in pod.status.init_container_statuses if status.name in beside]
    return max(regular, default=0), max(helping, default=0)


def sidecars(pod: Pod) -> set[str]:
    """Name the init containers that run beside the others."""
    return {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}


def finished_at(pod: Pod) -> datetime:
    """Say when a pod ended, as well as can be told.

    The end of its last container; else when it ceased to be ready; else when it was told to go; else when it was made.
    """
    ended = _containers_ended(pod)
    if ended is not None:
        return ended
    condition = ready_condition(pod)
    if condition is not None and condition.status == "False" and condition.last_transition_time is not None:
        return condition.last_transition_time
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        return metadata.deletion_timestamp - timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
    assert metadata.creation_timestamp is not None
    return metadata.creation_timestamp


def _containers_ended(pod: Pod) -> datetime | None:
    beside = sidecars(pod)
    statuses = [*pod.status.container_statuses]
    statuses += [status for status in pod.status.init_container_statuses if status.name in beside]
    ends = [_ended(status) for status in statuses]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def _ended(status: ContainerStatus) -> datetime | None:
    terminated = status.state.terminated if status.state is not None else None
    return terminated.finished_at if terminated is not None else None
