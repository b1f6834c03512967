"""Validation of Events of both groups, in the form of the core group."""

from __future__ import annotations

from typing import Any, Final

from konverge_cluster.api.field_errors import invalid, required
from konverge_cluster.builtins.validation.values import FieldErrors, validate_immutable, validate_qualified_name

__all__ = ["validate_core_event", "validate_event", "validate_event_update"]

Spec = dict[str, Any]

_NO_MATCH: Final = "does not match event.namespace"
_FIXED: Final = (
    ("involvedObject", "involvedObject"),
    ("reason", "reason"),
    ("message", "message"),
    ("source", "source"),
    ("firstTimestamp", "firstTimestamp"),
    ("lastTimestamp", "lastTimestamp"),
    ("count", "count"),
    ("reason", "reason"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingComponent", "reportingController"),
    ("reportingInstance", "reportingInstance"),
)


def validate_core_event(new: Spec, *, controller_field: str = "reportingComponent") -> FieldErrors:
    """Validate the rules that both groups share."""
    namespace, involved = new["metadata"].get("namespace", ""), new["involvedObject"].get("namespace", "")
    path = "involvedObject.namespace"
    if new.get("eventTime") is None:
        matches = namespace in ("", "default") if not involved else namespace == involved
        if not matches:
            yield invalid(path, involved, _NO_MATCH)
        return
    if not involved and namespace not in ("default", "kube-system"):
        yield invalid(path, involved, _NO_MATCH)
    controller = new.get("reportingComponent", "")
    if not controller:
        yield required(controller_field)
    yield from validate_qualified_name(controller, controller_field)
    for name, limit in (("reportingInstance", 128), ("action", 128), ("reason", 128)):
        yield from _validate_required(new.get(name, ""), limit, name)
    yield from _validate_length(new.get("message", ""), 1024, "message")


def _validate_required(value: str, limit: int, path: str) -> FieldErrors:
    if not value:
        yield required(path)
    yield from _validate_length(value, limit, path)


def _validate_length(value: str, limit: int, path: str) -> FieldErrors:
    if len(value.encode()) > limit:
        yield invalid(path, "", f"can have at most {limit} characters")


def validate_event(new: Spec) -> FieldErrors:
    """Validate a new event of events.k8s.io."""
    yield from validate_core_event(new, controller_field="reportingController")
    yield from _validate_series(new)
    if new.get("eventTime") is None:
        yield required("eventTime")
    if new.get("type", "") not in ("Normal", "Warning"):
        yield invalid("type", "", f"has invalid value: {new.get('type', '')}")
    for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if new.get(name):
            yield invalid(name, "", "needs to be unset")


def _validate_series(new: Spec) -> FieldErrors:
    series = new.get("series")
    if series is None:
        return
    if series.get("count", 0) < 2:
        yield invalid("series.count", "", "should be at least 2")
    if series.get("lastObservedTime") is None:
        yield required("series.lastObservedTime")


def validate_event_update(new: Spec, old: Spec) -> FieldErrors:
    """Validate an update of an event of events.k8s.io: only the series may change."""
    yield from validate_core_event(new, controller_field="reportingController")
    if new.get("series") != old.get("series"):
        yield from _validate_series(new)
    for name, path in _FIXED:
        yield from validate_immutable(new.get(name), old.get(name), path)
