"""Which events are one and the same, seen again.

This module remembers and decides; it does not send. Rules that hold here:

1. Two events are alike when controller, object, related object, type, reason and action are the same. Whoever reads
   them looks for those, and controllers put changing details into the words.
2. Alike events with the same words, seen within the window, are one series: one Event on the server with a count.
3. Alike events in ever different words are kept apart up to a number; from there on they are one more series, whose
   words say so.
4. What is remembered is bounded; the series seen longest ago is forgotten first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from konverge.objects import AnyObject, MicroTime
from konverge.reconcile.event_limits import EventLimits

__all__ = ["EventBook", "Reference", "Said", "Series"]

_COMBINED = "(combined from similar events): "

Subject: TypeAlias = tuple[str, str, str, str, str, str]
Group: TypeAlias = tuple[str, Subject, Subject | None, str, str, str]


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """Which object an event is about, and optionally which version and which part of it."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""

    @classmethod
    def of(cls, obj: AnyObject, *, field_path: str = "") -> Reference:
        """Refer to an object."""
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
        """The object and part, whatever its version: a new version does not make an old complaint new."""
        return (self.api_version, self.kind, self.namespace, self.name, self.uid, self.field_path)


class Said(msgspec.Struct, frozen=True):
    """One event as it was recorded."""

    controller: str
    about: Reference
    related: Reference | None
    type: str
    reason: str
    action: str
    note: str
    moment: MicroTime

    @property
    def group(self) -> Group:
        """What makes it alike to others."""
        related = None if self.related is None else self.related.subject
        return (self.controller, self.about.subject, related, self.type, self.reason, self.action)


class Series:
    """An event, how often it was seen, and how much of that is on the server.

    `created` says that an Event of this name is there; `paid` that the write to come has its tokens; `busy` that a
    write is on its way; `due` is when it is looked at next. Times are the loop's.
    """

    __slots__ = (
        "busy", "count", "created", "due", "first", "forgotten", "gap", "last", "name", "note", "paid", "seen", "tries",
        "written", "written_at",
    )  # fmt: skip

    def __init__(self, first: Said, note: str, now: float) -> None:
        self.first = first
        self.note = note  # what it is found by; "" for the combined one
        self.name = ""
        self.count = 1
        self.written = 0
        self.seen = now
        self.last = first.moment
        self.created = False
        self.paid = False
        self.busy = False
        self.forgotten = False
        self.tries = 0
        self.due = math.inf
        self.gap = 0.0
        self.written_at = 0.0

    @property
    def unwritten(self) -> int:
        """How many sightings the server does not know of."""
        return self.count - self.written

    @property
    def text(self) -> str:
        """The words for the server, before they are cut to size."""
        return self.first.note if self.note else _COMBINED + self.first.note


class EventBook:
    """The series of the last minutes.

    Promises: at most `limits.series` are remembered. `make_room` is called with a series that must be forgotten for
    another one's sake, and calls `forget`.
    """

    def __init__(self, limits: EventLimits, make_room: Callable[[Series], None]) -> None:
        self._limits = limits
        self._make_room = make_room
        self._groups: dict[Group, dict[str, Series]] = {}
        self._by_sight: dict[Series, None] = {}  # seen longest ago in front

    def __len__(self) -> int:
        return len(self._by_sight)

    def all(self) -> list[Series]:
        """Give every series, those seen longest ago first."""
        return list(self._by_sight)

    def see(self, said: Said, now: float) -> Series | None:
        """Count an event on the series that it belongs to, and give that; None when there is none."""
        alike = self._groups.get(said.group)
        if alike is None:
            return None
        series = alike.get(said.note or " ") or (alike.get("") if self._crowded(alike, now) else None)
        if series is None:
            return None
        if self.is_over(series, now):
            self._make_room(series)
            return None
        series.count += 1
        series.seen, series.last = now, said.moment
        del self._by_sight[series]
        self._by_sight[series] = None
        return series

    def open(self, said: Said, now: float) -> Series:
        """Begin a series with an event that belongs to none."""
        if len(self._by_sight) >= self._limits.series:
            self._make_room(next(iter(self._by_sight)))
        alike = self._groups.setdefault(said.group, {})
        note = "" if self._crowded(alike, now) else said.note or " "
        series = Series(said, note, now)
        alike = self._groups.setdefault(said.group, alike)
        alike[note] = series
        self._by_sight[series] = None
        return series

    def is_over(self, series: Series, now: float) -> bool:
        """Tell whether the next event like it starts anew."""
        return now >= self.end_of(series)

    def end_of(self, series: Series) -> float:
        """Give the time at which a series is over, unless it is seen again. One sum for all who ask: no rounding."""
        return series.seen + self._limits.window

    def forget(self, series: Series) -> None:
        """Remember a series no longer."""
        series.forgotten = True
        del self._by_sight[series]
        alike = self._groups[series.first.group]
        del alike[series.note]
        if not alike:
            del self._groups[series.first.group]

    def _crowded(self, alike: dict[str, Series], now: float) -> bool:
        """Tell whether there are too many in different words, after those that are over made room."""
        if len(alike) < self._limits.similar:
            return False
        for series in [one for one in alike.values() if self.is_over(one, now)]:
            self._make_room(series)
        return len(alike) - ("" in alike) >= self._limits.similar
