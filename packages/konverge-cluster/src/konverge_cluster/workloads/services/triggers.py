"""Since when a change of endpoints was due: the time that slices and Endpoints carry as an annotation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from konverge.k8s.core.v1 import Pod, Service
from konverge.objects import Key
from konverge_cluster.workloads.pods.facts import ready_condition

__all__ = ["CHANGED", "ChangeTimes", "annotated"]

CHANGED: Final = "endpoints.kubernetes.io/last-change-trigger-time"


@dataclass
class _Known:
    service: datetime | None = None
    pods: dict[str, datetime] = field(default_factory=dict)


class ChangeTimes:
    """Remembers for each service when its pods last changed their readiness."""

    def __init__(self) -> None:
        self._known: dict[Key, _Known] = {}

    def of(self, service: Service, pods: Iterable[Pod]) -> datetime | None:
        """Give the earliest change since the last call; for a service not seen before, when it was made."""
        made = service.metadata.creation_timestamp
        times = {pod.name: at for pod in pods if (at := _readiness_changed(pod)) is not None}
        before = self._known.get(service.key)
        self._known[service.key] = _Known(made, times)
        if before is None:
            return made
        changed = [at for name, at in times.items() if name not in before.pods or at > before.pods[name]]
        changed += [made] if made is not None and (before.service is None or made > before.service) else []
        return min(changed, default=None)

    def forget(self, key: Key) -> None:
        """Forget a service."""
        self._known.pop(key, None)


def annotated(annotations: dict[str, str], changed: datetime | None) -> dict[str, str]:
    """Give annotations with the time of the change, or without one where there is none."""
    others = {name: value for name, value in annotations.items() if name != CHANGED}
    return others if changed is None else {**others, CHANGED: _text(changed)}


def _readiness_changed(pod: Pod) -> datetime | None:
    condition = ready_condition(pod)
    return condition.last_transition_time if condition is not None else None


def _text(at: datetime) -> str:
    """Write a time as Go does, with only the decimals that it needs."""
    text = at.astimezone(UTC).replace(tzinfo=None).isoformat()
    return (text.rstrip("0") if "." in text else text) + "Z"
