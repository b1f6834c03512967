"""Finished pods in the order in which they are deleted when there are too many."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from konverge.k8s.core.v1 import Pod
from konverge.objects import Key

__all__ = ["FinishedPods", "is_finished"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNFINISHED: Final = ("Pending", "Running", "Unknown")


def is_finished(pod: Pod) -> bool:
    """Report whether a pod has terminated."""
    return bool(pod.status.phase) and pod.status.phase not in _UNFINISHED


class FinishedPods:
    """All finished pods of the cluster."""

    def __init__(self) -> None:
        self._pods: dict[Key, tuple[bool, datetime, str]] = {}

    def put(self, pod: Pod) -> None:
        """Add a pod if it is finished, and remove it if it is not."""
        if is_finished(pod):
            evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
            self._pods[pod.key] = (not evicted, pod.metadata.creation_timestamp or _EPOCH, pod.name)
        else:
            self.drop(pod.key)

    def drop(self, key: Key) -> None:
        """Remove a pod."""
        self._pods.pop(key, None)

    def oldest(self, threshold: int) -> list[Key]:
        """Return the pods above a threshold: evicted ones first, then the oldest."""
        count = len(self._pods) - threshold
        return sorted(self._pods, key=self._pods.__getitem__)[:count] if count > 0 else []
