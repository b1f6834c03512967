"""The last-change trigger time of endpoints: the annotation of slices and Endpoints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from konverge.k8s.core.v1 import Pod, Service
from konverge.objects import Key
from konverge_cluster.workloads.pods.facts import ready_condition

__all__ = ["CHANGED", "TriggerTimeTracker", "annotate"]

CHANGED: Final = "endpoints.kubernetes.io/last-change-trigger-time"


@dataclass
class _Observed:
    service: datetime | None = None
    pods: dict[str, datetime] = field(default_factory=dict)


class TriggerTimeTracker:
    """Tracks for each service when its pods last changed their readiness."""

    def __init__(self) -> None:
        self._known: dict[Key, _Observed] = {}

    def last_change(self, service: Service, pods: Iterable[Pod]) -> datetime | None:
        """Return the earliest change since the last call; for a new service, its creation time."""
        made = service.metadata.creation_timestamp
        times = {pod.name: at for pod in pods if (at := _readiness_changed(pod)) is not None}
        before = self._known.get(service.key)
        self._known[service.key] = _Observed(made, times)
        if before is None:
            return made
        changed = [at for name, at in times.items() if name not in before.pods or at > before.pods[name]]
        changed += [made] if made is not None and (before.service is None or made > before.service) else []
        return min(changed, default=None)

    def forget(self, key: Key) -> None:
        """Forget a service."""
        self._known.pop(key, None)


def annotate(annotations: dict[str, str], changed: datetime | None) -> dict[str, str]:
    """Return annotations with the trigger time, or without it if there is none."""
    others = {name: value for name, value in annotations.items() if name != CHANGED}
    return others if changed is None else {**others, CHANGED: _format_time(changed)}


def _readiness_changed(pod: Pod) -> datetime | None:
    condition = ready_condition(pod)
    return condition.last_transition_time if condition is not None else None


def _format_time(at: datetime) -> str:
    """Format a time as Go does, with only the necessary decimals."""
    text = at.astimezone(UTC).replace(tzinfo=None).isoformat()
    return (text.rstrip("0") if "." in text else text) + "Z"
