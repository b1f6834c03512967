"""Events: what a store tells its subscribers, in one step with the change itself.

An event compares what was delivered with what is delivered now; own writes that are only known from their response make
none. A subscriber is a plain function: it must not block, and if it raises, the others are told all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from konverge.cache.entries import Entry
from konverge.objects import Key

__all__ = ["Event", "EventType", "Subscriber", "Subscription", "events_between"]

_log = logging.getLogger("konverge.cache")


class EventType(StrEnum):
    """What happened to an object."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change of one object, from `old` to `new`.

    An object that came has no `old`, one that went has no `new` and its last state as `old`. `listed` says that the
    change was found by a list, not told by a watch. `writer` is who wrote this state through this process, when nobody
    else had a part in it: whoever that is need not be woken.
    """

    type: EventType
    old: Entry | None
    new: Entry | None
    listed: bool = False
    writer: Any = None

    @property
    def entry(self) -> Entry:
        """The state that the event is about: the new one, or the last."""
        entry = self.new if self.new is not None else self.old
        assert entry is not None
        return entry

    @property
    def key(self) -> Key:
        """The object's key."""
        return self.entry.key


def events_between(
    old: Entry | None, new: Entry | None, *, listed: bool = False, writer: Any = None
) -> tuple[Event, ...]:
    """Give the events that lead from one state to another."""
    if old is None:
        return (Event(EventType.ADDED, None, new, listed, writer),)
    if new is None:
        return (Event(EventType.REMOVED, old, None, listed, writer),)
    if old.uid == new.uid:
        return (Event(EventType.CHANGED, old, new, listed, writer),)
    # The name went to another object: the first one is gone, and that must not be missed.
    return (Event(EventType.REMOVED, old, None, listed, None), Event(EventType.ADDED, None, new, listed, writer))


Subscriber: TypeAlias = Callable[[Event], None]

Difference: TypeAlias = tuple[Entry | None, Entry | None]


class Subscription:
    """One subscriber of a store, and what it has still to be told of a list.

    Promises: what is told of one object is in order and without gaps, whatever is told of others in between; replaying
    all that was told gives what is delivered.
    """

    def __init__(self, subscriber: Subscriber, close: Callable[[Subscription], None] = lambda _: None) -> None:
        self._subscriber = subscriber
        self._close = close
        self._untold: dict[Key, Difference] = {}

    def close(self) -> None:
        """Tell nothing any more."""
        self._untold.clear()
        self._close(self)

    def take_leave(self, entries: Iterable[Entry]) -> None:
        """Close, and tell what is delivered as removed: it is out of the subscriber's sight."""
        known = [entry for entry in entries if entry.key not in self._untold]
        known += [old for old, _ in self._untold.values() if old is not None]
        self.close()
        for entry in known:
            self._tell(entry, None, listed=True, writer=None)

    def owe(self, key: Key, old: Entry | None, new: Entry | None) -> None:
        """Keep a difference to be told later, by `tell_some`."""
        if key in self._untold:
            old = self._untold.pop(key)[0]
        if old is not new:
            self._untold[key] = (old, new)

    def tell(self, key: Key, old: Entry | None, new: Entry | None, writer: Any) -> None:
        """Tell a change now, and before it what is still owed of the same object."""
        if self._untold:
            owed = self._untold.pop(key, None)
            if owed is not None:
                self._tell(*owed, listed=True, writer=None)
        self._tell(old, new, listed=False, writer=writer)

    def tell_missed(self, entry: Entry) -> None:
        """Tell that an object is gone that was never told of, before anything that is owed of its name."""
        self._tell(entry, None, listed=True, writer=None)

    def tell_some(self, count: int) -> bool:
        """Tell so many of the differences that are owed; give whether there are more."""
        untold = self._untold
        for _ in range(min(count, len(untold))):
            key = next(iter(untold))
            self._tell(*untold.pop(key), listed=True, writer=None)
        return bool(untold)

    def _tell(self, old: Entry | None, new: Entry | None, *, listed: bool, writer: Any) -> None:
        for event in events_between(old, new, listed=listed, writer=writer):
            self._call(event)

    def _call(self, event: Event) -> None:
        try:
            self._subscriber(event)
        except Exception:
            _log.exception("A subscriber of the cache failed", extra={"key": str(event.key), "event": event.type})
