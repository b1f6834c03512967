"""Event objects for the server: with valid fields of limited length, and a unique name."""

from __future__ import annotations

import re
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from konverge.objects import ObjectMeta, safe_name
from konverge.objects.names import MAX_SUBDOMAIN_LENGTH, dns_subdomain_errors, label_key_errors
from konverge.reconcile.event_series import RecordedEvent, Reference, Series

if TYPE_CHECKING:
    from konverge.k8s.core.v1 import ObjectReference
    from konverge.k8s.events.v1 import Event

__all__ = [
    "NOTE_BYTES",
    "WORD_BYTES",
    "check_controller",
    "event_name",
    "event_of",
    "namespace_of",
    "truncate",
    "validate",
]

NOTE_BYTES: Final = 1024
WORD_BYTES: Final = 128
_CLUSTER_NAMESPACE: Final = "default"
_TYPES: Final = ("Normal", "Warning")
_WORD: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_,:./-]*[A-Za-z0-9_])?")
_ELLIPSIS: Final = "..."
_SUFFIX: Final = 17  # a dot and 16 hexadecimal digits


def truncate(text: str, limit: int) -> str:
    """Return at most `limit` bytes of UTF-8 of a text, in whole characters; what cannot be encoded becomes "?"."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return raw.decode()
    return raw[: limit - len(_ELLIPSIS)].decode("utf-8", "ignore") + _ELLIPSIS


def validate(event: RecordedEvent) -> RecordedEvent:
    """Return an event whose texts have a valid length.

    Raises: ValueError when the server would reject an argument of the caller.
    """
    if event.type not in _TYPES:
        raise ValueError(f"the type of an event is 'Normal' or 'Warning', got {event.type!r}")
    if not isinstance(event.note, str):
        raise ValueError(f"the message of an event is a str, got {event.note!r:.100}")
    check_controller(event.controller)
    _check(event.regarding)
    if event.related is not None:
        _check(event.related)
    return replace(
        event,
        reason=_word(event.reason, "reason"),
        action=_word(event.action, "action"),
        note=truncate(event.note, NOTE_BYTES),
    )


@lru_cache(maxsize=256)
def check_controller(name: str) -> None:
    """Check the name of a reporting controller.

    Raises: ValueError when it is not a qualified name, which the server would reject.
    """
    if errors := label_key_errors(name):
        raise ValueError(f"controller {name!r:.100} cannot report events: {errors[0]}")


def event_name(regarding: Reference, random: Random) -> str:
    """Return a unique name for an Event: that of the object, and 64 random bits."""
    name = regarding.name
    if len(name) > MAX_SUBDOMAIN_LENGTH - _SUFFIX or dns_subdomain_errors(name):
        name = safe_name(name)
    return f"{name}.{random.getrandbits(64):016x}"


def namespace_of(series: Series) -> str:
    """Return the namespace of the Event: that of its object, or "default" for a cluster-scoped object."""
    return series.first.regarding.namespace or _CLUSTER_NAMESPACE


def event_of(series: Series, instance: str) -> Event:
    """Return the Event to create for the current state of a series."""
    # Imported here, so that only processes that send events load the generated kinds.
    from konverge.k8s.events.v1 import Event, EventSeries

    first = series.first
    event_series = EventSeries(count=series.count, last_observed_time=series.last) if series.count > 1 else None
    return Event(
        metadata=ObjectMeta(name=series.name, namespace=namespace_of(series)),
        event_time=first.time,
        type=first.type,
        reason=first.reason,
        action=first.action,
        note=truncate(series.text, NOTE_BYTES),
        regarding=_object_reference(first.regarding),
        related=None if first.related is None else _object_reference(first.related),
        reporting_controller=first.controller,
        reporting_instance=instance,
        series=event_series,
    )


def _object_reference(reference: Reference) -> ObjectReference:
    from konverge.k8s.core.v1 import ObjectReference

    values = {name: getattr(reference, name) or None for name in reference.__struct_fields__}
    return ObjectReference(**values)


def _check(reference: Any) -> None:
    if not isinstance(reference, Reference):
        raise ValueError(f"an event needs a Reference: write Reference.of(obj), got {reference!r:.100}")
    if not (reference.kind and reference.name and reference.api_version):
        raise ValueError(f"an event needs an object with apiVersion, kind and name, got {reference!r:.200}")


def _word(word: Any, field: str) -> str:
    if not isinstance(word, str) or not _WORD.fullmatch(word):
        raise ValueError(f"the {field} of an event is one word like 'ScaledUp', got {word!r:.100}")
    return word[:WORD_BYTES]
