"""Correlation of events: which recorded events are repetitions of one.

This module stores and decides; it does not send. Rules that hold here:

1. Two events are similar if controller, object, related object, type, reason and action are the same. Readers search
   for these, and controllers put changing details into the message.
2. Similar events with the same message, recorded within the window, are one series: one Event on the server with a
   count.
3. Similar events with different messages are separate series up to a number; further ones are combined into one more
   series, whose message says so.
4. The number of stored series is bounded; the least recently recorded series is dropped first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from konverge.objects import AnyObject, MicroTime
from konverge.reconcile.event_limits import EventLimits

__all__ = ["EventCorrelator", "RecordedEvent", "Reference", "Series"]

_COMBINED = "(combined from similar events): "

Subject: TypeAlias = tuple[str, str, str, str, str, str]
Group: TypeAlias = tuple[str, Subject, Subject | None, str, str, str]


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """The object that an event is about, and optionally its version and a field of it."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""

    @classmethod
    def of(cls, obj: AnyObject, *, field_path: str = "") -> Reference:
        """Return a reference to an object."""
        return cls(
            api_version=obj.api_version,
            kind=obj.kind,
            name=obj.name,
            namespace=obj.namespace,
            uid=obj.uid,
            resource_version=obj.resource_version,
            field_path=field_path,
        )

    @property
    def subject(self) -> Subject:
        """The object and field, without the version: a new version does not make a repeated event new."""
        return (self.api_version, self.kind, self.namespace, self.name, self.uid, self.field_path)


class RecordedEvent(msgspec.Struct, frozen=True):
    """One event, as recorded."""

    controller: str
    regarding: Reference
    related: Reference | None
    type: str
    reason: str
    action: str
    note: str
    time: MicroTime

    @property
    def group(self) -> Group:
        """The fields that similar events share."""
        related = None if self.related is None else self.related.subject
        return (self.controller, self.regarding.subject, related, self.type, self.reason, self.action)


class Series:
    """An event, how often it was recorded, and how much of that is on the server.

    `created`: an Event of this name exists; `has_tokens`: the next write has its tokens; `writing`: a write is in
    flight; `due`: when it is processed next. Times are those of the event loop.
    """

    __slots__ = (
        "attempts", "count", "created", "dropped", "due", "first", "has_tokens", "interval", "last", "last_recorded",
        "name", "note", "writing", "written", "written_at",
    )  # fmt: skip

    def __init__(self, first: RecordedEvent, note: str, now: float) -> None:
        self.first = first
        self.note = note  # its key among similar events; "" for the combined series
        self.name = ""
        self.count = 1
        self.written = 0
        self.last_recorded = now
        self.last = first.time
        self.created = False
        self.has_tokens = False
        self.writing = False
        self.dropped = False
        self.attempts = 0
        self.due = math.inf
        self.interval = 0.0
        self.written_at = 0.0

    @property
    def pending(self) -> int:
        """The part of the count that is not on the server."""
        return self.count - self.written

    @property
    def text(self) -> str:
        """The message for the server, before it is truncated."""
        return self.first.note if self.note else _COMBINED + self.first.note


class EventCorrelator:
    """The series of the last minutes.

    Promises: at most `limits.series` are stored. `evict` is called with a series that must be dropped for another one,
    and calls `drop`.
    """

    def __init__(self, limits: EventLimits, evict: Callable[[Series], None]) -> None:
        self._limits = limits
        self._evict = evict
        self._groups: dict[Group, dict[str, Series]] = {}
        self._by_age: dict[Series, None] = {}  # least recently recorded first

    def __len__(self) -> int:
        return len(self._by_age)

    def all(self) -> list[Series]:
        """Return every series, the least recently recorded first."""
        return list(self._by_age)

    def count(self, event: RecordedEvent, now: float) -> Series | None:
        """Count an event on its series, and return the series; None if there is none."""
        similar = self._groups.get(event.group)
        if similar is None:
            return None
        series = similar.get(event.note or " ") or (similar.get("") if self._is_full(similar, now) else None)
        if series is None:
            return None
        if self.is_expired(series, now):
            self._evict(series)
            return None
        series.count += 1
        series.last_recorded, series.last = now, event.time
        del self._by_age[series]
        self._by_age[series] = None
        return series

    def create(self, event: RecordedEvent, now: float) -> Series:
        """Create a series for an event that has none."""
        if len(self._by_age) >= self._limits.series:
            self._evict(next(iter(self._by_age)))
        similar = self._groups.setdefault(event.group, {})
        note = "" if self._is_full(similar, now) else event.note or " "
        series = Series(event, note, now)
        similar = self._groups.setdefault(event.group, similar)
        similar[note] = series
        self._by_age[series] = None
        return series

    def is_expired(self, series: Series, now: float) -> bool:
        """Report whether the next similar event begins a new series."""
        return now >= self.expiry(series)

    def expiry(self, series: Series) -> float:
        """Return the time at which a series expires. All callers use this sum, so that rounding does not matter."""
        return series.last_recorded + self._limits.window

    def drop(self, series: Series) -> None:
        """Remove a series."""
        series.dropped = True
        del self._by_age[series]
        similar = self._groups[series.first.group]
        del similar[series.note]
        if not similar:
            del self._groups[series.first.group]

    def _is_full(self, similar: dict[str, Series], now: float) -> bool:
        """Report whether there are too many different messages, after expired series were evicted."""
        if len(similar) < self._limits.messages:
            return False
        for series in [one for one in similar.values() if self.is_expired(one, now)]:
            self._evict(series)
        return len(similar) - ("" in similar) >= self._limits.messages
