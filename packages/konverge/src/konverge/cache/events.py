"""Events: what a store reports to its subscribers, in the same step as the change itself.

An event compares what was delivered before with what is delivered now. An own write that is known only from its
response causes no event. A subscriber is a plain function: it must not block. If it raises, the error is logged and the
other subscribers are called all the same.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from konverge.cache.entries import Entry
from konverge.objects import Key

__all__ = ["Event", "EventHandler", "EventType", "Subscription", "change_events"]

_log = logging.getLogger("konverge.cache")


class EventType(StrEnum):
    """What happened to an object."""

    ADDED = "added"
    UPDATED = "updated"
    DELETED = "deleted"


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change of one object, from `old` to `new`.

    An added object has no `old`. A deleted object has no `new`, and its last state as `old`. `listed` is True if a list
    found the change, not a watch. `writer` identifies the writer of this state if the write went through this process
    and nobody else took part in it: that writer does not need to be notified.
    """

    type: EventType
    old: Entry | None
    new: Entry | None
    listed: bool = False
    writer: Any = None

    @property
    def entry(self) -> Entry:
        """The state that the event is about: the new one, or the last one of a deleted object."""
        entry = self.new if self.new is not None else self.old
        assert entry is not None
        return entry

    @property
    def key(self) -> Key:
        """The object's key."""
        return self.entry.key


def change_events(
    old: Entry | None, new: Entry | None, *, listed: bool = False, writer: Any = None
) -> tuple[Event, ...]:
    """Return the events that lead from one state to another."""
    if old is None:
        return (Event(EventType.ADDED, None, new, listed, writer),)
    if new is None:
        return (Event(EventType.DELETED, old, None, listed, writer),)
    if old.uid == new.uid:
        return (Event(EventType.UPDATED, old, new, listed, writer),)
    # Another object has the name now. The deletion of the first one must be reported too.
    return (Event(EventType.DELETED, old, None, listed, None), Event(EventType.ADDED, None, new, listed, writer))


EventHandler: TypeAlias = Callable[[Event], None]

Difference: TypeAlias = tuple[Entry | None, Entry | None]


class Subscription:
    """One event handler of a store, and the changes found by a list that it has not received yet.

    Promises: the events of one object arrive in order and without gaps, whatever events of other objects come in
    between; replaying all events yields what is delivered.
    """

    def __init__(self, handler: EventHandler, on_close: Callable[[Subscription], None] = lambda _: None) -> None:
        self._handler = handler
        self._on_close = on_close
        self._pending: dict[Key, Difference] = {}
        # Keys in the order in which they are reported; some are reported already. (Taking the first key of a dict again
        # and again takes quadratic time: it passes all the places of keys that were there before.)
        self._order: deque[Key] = deque()

    def close(self) -> None:
        """Stop calling the handler."""
        self._pending.clear()
        self._order.clear()
        self._on_close(self)

    def close_as_deleted(self, entries: Iterable[Entry]) -> None:
        """Close, and report the delivered `entries` as deleted: the handler no longer watches them."""
        known = [entry for entry in entries if entry.key not in self._pending]
        known += [old for old, _ in self._pending.values() if old is not None]
        self.close()
        for entry in known:
            self._notify(entry, None, listed=True, writer=None)

    def add_pending(self, key: Key, old: Entry | None, new: Entry | None) -> None:
        """Store a difference that `notify_pending` reports later."""
        if key in self._pending:
            old = self._pending.pop(key)[0]
        if old is not new:
            self._pending[key] = (old, new)
            self._order.append(key)

    def notify(self, key: Key, old: Entry | None, new: Entry | None, writer: Any) -> None:
        """Report a change now, after the pending difference of the same object."""
        if self._pending:
            pending = self._pending.pop(key, None)
            if pending is not None:
                self._notify(*pending, listed=True, writer=None)
        self._notify(old, new, listed=False, writer=writer)

    def notify_deleted(self, entry: Entry) -> None:
        """Report the deletion of an object that was never reported, before any pending difference of its name."""
        self._notify(entry, None, listed=True, writer=None)

    def notify_pending(self, count: int) -> bool:
        """Report up to `count` pending differences; return whether more are left."""
        while count and self._order:
            difference = self._pending.pop(self._order.popleft(), None)
            if difference is not None:
                count -= 1
                self._notify(*difference, listed=True, writer=None)
        return bool(self._pending)

    def _notify(self, old: Entry | None, new: Entry | None, *, listed: bool, writer: Any) -> None:
        for event in change_events(old, new, listed=listed, writer=writer):
            self._call(event)

    def _call(self, event: Event) -> None:
        try:
            self._handler(event)
        except Exception:
            _log.exception("event handler failed", extra={"key": str(event.key), "event": event.type})
