"""Strategies of Events: one collection, served by two groups with different names for the same fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from konverge.objects.kinds import Kind
from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.names import path_segment_name_errors
from konverge_cluster.api.status_errors import invalid
from konverge_cluster.api.strategy import Document, RequestContext
from konverge_cluster.builtins.rows.clusters import event_cells
from konverge_cluster.builtins.schemas import LazyTopologies
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.builtins.validation import events as rules

__all__ = ["CoreEventStrategy", "EventStrategy"]

_CORE: Final = Kind("", "v1", "Event", "events")
_EVENTS: Final = Kind("events.k8s.io", "v1", "Event", "events")

_RENAMED: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_RENAMED_BACK: Final = {new: old for old, new in _RENAMED.items()}
# The core group prints these even if empty; events.k8s.io omits them.
_ALWAYS_IN_CORE: Final = ("reportingComponent", "reportingInstance")
_INVOLVED: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _labels(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}" for name in _INVOLVED)


class CoreEventStrategy(BuiltinStrategy):
    """Events of the core group, the stored form."""

    create_on_update = True
    default_propagation = "Unsupported"
    encoding_version = "v1"
    check = staticmethod(rules.validate_core_event)
    selectable_fields = (
        *_labels("involvedObject"),
        "reason",
        "reportingComponent",
        "source",
        "type",
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.topologies = LazyTopologies((_CORE, _EVENTS))

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        return path_segment_name_errors(name, prefix=prefix)

    def fields(self, document: Document) -> dict[str, str]:
        fields = super().fields(document)
        fields["source"] = document["source"].get("component") or fields["reportingComponent"]
        return fields

    def convert(self, document: Document, api_version: str) -> Document:
        converted = _to_events(document) if api_version == _EVENTS.api_version else dict(document)
        return {**converted, "apiVersion": api_version}


class EventStrategy(BuiltinStrategy):
    """Events of the group events.k8s.io."""

    create_on_update = True
    default_propagation = "Unsupported"
    encoding_version = "events.k8s.io/v1"

    def validate(self, new: Document, context: RequestContext) -> list[FieldError]:
        return _raise_as_core_event(new, super().validate(new, context))

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        return _raise_as_core_event(new, super().validate_update(new, old, context))

    @staticmethod
    def check(new: Document) -> Iterable[FieldError]:
        return rules.validate_event(_to_core(new))

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_event_update(_to_core(new), _to_core(old))

    selectable_fields = (
        *_labels("regarding"),
        "reason",
        "reportingController",
        "type",
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.topologies = LazyTopologies((_CORE, _EVENTS))

    def cells(self, document: Document, now: float) -> list[Any]:
        return event_cells(_to_core(document), now)

    async def from_storage(self, stored: Sequence[tuple[Document, object]]) -> list[Document]:
        return [_to_events(document) for document, _ in stored]

    async def to_storage(self, document: Document) -> tuple[Document, object]:
        return _to_core(document), CoreEventStrategy.encoding_version

    def convert(self, document: Document, api_version: str) -> Document:
        converted = _to_core(document) if api_version == _CORE.api_version else dict(document)
        return {**converted, "apiVersion": api_version}


def _raise_as_core_event(event: Document, errors: list[FieldError]) -> list[FieldError]:
    """Raise the errors in the name of the core group, as the real server does for both groups."""
    if errors:
        raise invalid("", "Event", event["metadata"].get("name", ""), errors)
    return errors


def _to_events(document: Document) -> Document:
    converted = {_RENAMED.get(key, key): value for key, value in document.items()}
    for key in _ALWAYS_IN_CORE:
        if not converted.get(_RENAMED.get(key, key)):
            converted.pop(_RENAMED.get(key, key), None)
    return converted


def _to_core(document: Document) -> Document:
    converted = {_RENAMED_BACK.get(key, key): value for key, value in document.items()}
    for key in _ALWAYS_IN_CORE:
        converted.setdefault(key, "")
    return converted
