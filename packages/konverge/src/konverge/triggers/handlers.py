"""Turn the events of a trigger into requests to enqueue keys."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from konverge.cache import CacheOptions, Entry, Event, EventType
from konverge.errors import NotSynced
from konverge.objects import Key, Kind, Resource, kind_of
from konverge.queue import Priority
from konverge.triggers.differences import content_changed
from konverge.triggers.mappers import EventMapper, Mapper, reads_cache
from konverge.triggers.predicates import Predicate
from konverge.triggers.readers import CacheReader
from konverge.triggers.reasons import USER_CODE_ERRORS, EnqueueReason

__all__ = ["EnqueueRequest", "Trigger", "TriggerHandler"]

_log = logging.getLogger("konverge.triggers")


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """A kind whose changes enqueue keys of a controller: the predicate selects changes, the mapper returns the keys.

    `name` is readable: "owns Deployment". `primary` marks the trigger of the controller's own kind, `owned` a trigger
    of its children. `options` configure the cache of the kind. With `resync`, all objects of the kind are mapped again
    after that number of seconds, whether they changed or not.
    """

    name: str
    kind: type[Resource] | Kind
    predicate: Predicate
    mapper: Mapper
    options: CacheOptions | None = None
    primary: bool = False
    owned: bool = False
    resync: float | None = None


class EnqueueRequest(NamedTuple):
    """A key to enqueue: the reason, the priority, and whether new input ends the backoff of the key.

    `writer` is the controller and key whose reconcile made the change, if nobody else took part in it.
    """

    key: Key
    reason: EnqueueReason
    priority: Priority
    reset_backoff: bool
    writer: Any = None


class TriggerHandler:
    """The event handler of one trigger of one controller.

    Promises:

    - an event enqueues each key once, for its old or its new state;
    - a request names the writer of a change, unless somebody else took part in it; the deletion of the primary object
      has none, since it enqueues its key whoever deleted it;
    - changes found by a list have a lower priority than live changes;
    - a primary object that is added, deleted, gets a deletionTimestamp or has a new spec is new input and resets the
      backoff; nothing else does, so changes of children, status, labels and annotations do not shorten a backoff;
    - a predicate that raises passes the event and is logged: no change is lost because of a bug in a predicate;
    - an event whose mapper reads a kind that is not synced enqueues nothing: no reconcile has started then, and each
      object of the controller is enqueued by the list of its own kind.
    """

    def __init__(self, trigger: Trigger, *, controller: str, reader: CacheReader | None = None) -> None:
        self._trigger = trigger
        self._map = _bound(trigger.mapper, reader or CacheReader())
        self._kind = kind_of(trigger.kind).kind
        self._controller = controller

    def handle(self, event: Event) -> list[EnqueueRequest]:
        """Return the keys that an event enqueues."""
        if not self._passes(event):
            return []
        keys = dict.fromkeys(self._keys_of(event))
        if not keys:
            return []
        name, entry = self._trigger.name, event.entry
        reason = EnqueueReason(name, self._kind, entry.key, str(entry.version), event.type.value, event.listed)
        priority = Priority.LOW if event.listed else Priority.NORMAL
        reset_backoff = self._trigger.primary and _is_new_input(event)
        writer = None if self._trigger.primary and event.type is EventType.DELETED else event.writer
        return [EnqueueRequest(key, reason, priority, reset_backoff, writer) for key in keys]

    def resync(self, entry: Entry) -> list[EnqueueRequest]:
        """Return the keys that an unchanged object enqueues; predicates do not apply, since they compare states."""
        # `listed`, because an echo is recognized by its version, and this version may be an older write of the key.
        reason = EnqueueReason(self._trigger.name, self._kind, entry.key, str(entry.version), "resync", listed=True)
        keys = dict.fromkeys(self._keys_of(Event(EventType.UPDATED, entry, entry, True)))
        return [EnqueueRequest(key, reason, Priority.LOW, False) for key in keys]

    def _passes(self, event: Event) -> bool:
        try:
            return self._trigger.predicate(event)
        except USER_CODE_ERRORS:
            facts = {"trigger": self._trigger.name, "controller": self._controller, "key": str(event.key)}
            _log.exception("predicate failed", extra=facts)
            return True

    def _keys_of(self, event: Event) -> Iterable[Key]:
        try:
            return list(self._map(event))
        except NotSynced:
            return ()
        except USER_CODE_ERRORS:
            facts = {"trigger": self._trigger.name, "controller": self._controller, "key": str(event.key)}
            _log.exception("mapper failed", extra=facts)
            return ()


def _bound(mapper: Any, reader: CacheReader) -> EventMapper:
    """Return a mapper that needs only the event."""
    return (lambda event: mapper(event, reader)) if reads_cache(mapper) else mapper


def _is_new_input(event: Event) -> bool:
    old, new = event.old, event.new
    if old is None or new is None or old.terminating != new.terminating:
        return True
    return old.generation != new.generation if new.generation else content_changed(old, new)
