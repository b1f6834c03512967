"""Which changes of a pod affect the endpoints of services."""

from __future__ import annotations

from konverge.cache import Entry, Event
from konverge.k8s.core.v1 import PodCondition, PodIP
from konverge.objects import Model, field

__all__ = ["endpoints_changed"]


class _Spec(Model):
    hostname: str | None = None
    subdomain: str | None = None
    node_name: str | None = None


class _Status(Model):
    phase: str | None = None
    pod_ips: list[PodIP] = field(default_factory=list)
    conditions: list[PodCondition] = field(default_factory=list)


class _Pod(Model):
    """The fields of a pod that endpoints depend on; all others are skipped while decoding."""

    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)


def endpoints_changed(event: Event) -> bool:
    """Report whether a pod was added, deleted, or changed in a way that affects its endpoints."""
    old, new = event.old, event.new
    if old is None or new is None or old.terminating != new.terminating or old.labels != new.labels:
        return True
    return _relevant_fields(old) != _relevant_fields(new)


def _relevant_fields(entry: Entry) -> tuple[object, ...]:
    pod = entry.read(_Pod)
    ready = [(one.status, one.last_transition_time) for one in pod.status.conditions if one.type == "Ready"]
    return pod.spec, pod.status.phase, pod.status.pod_ips, ready
