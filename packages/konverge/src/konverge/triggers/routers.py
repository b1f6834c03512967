"""From an event of one trigger to the keys that it wakes, and how."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from konverge.cache import CacheOptions, Event, EventType
from konverge.objects import Key, Kind, Resource, kind_of
from konverge.queue import Priority
from konverge.triggers.differences import content_changed
from konverge.triggers.mappers import Mapper
from konverge.triggers.predicates import Predicate
from konverge.triggers.reasons import AUTHORS_ERRORS, EnqueueReason

__all__ = ["Route", "Router", "Trigger"]

_log = logging.getLogger("konverge.triggers")


@dataclass(frozen=True, kw_only=True)
class Trigger:
    """A kind whose changes wake a controller: which of them, and whom.

    `name` is in words, "owns Deployment". `primary` is the trigger of the controller's own kind, `owned` one of its
    children. `options` say how the kind is cached.
    """

    name: str
    kind: type[Resource] | Kind
    predicate: Predicate
    mapper: Mapper
    options: CacheOptions | None = None
    primary: bool = False
    owned: bool = False


class Route(NamedTuple):
    """A key to wake: why, how urgent, and whether there is new input, for which a key that backs off runs at once."""

    key: Key
    wake: EnqueueReason
    priority: Priority
    fresh: bool


class Router:
    """Takes the events of one trigger for one controller.

    Promises:

    - each key is woken once for an event, by the old state or by the new one;
    - a key is not woken by what its own reconcile wrote, when nobody else had a part in it; only by the end of its own
      object, whoever brought it about;
    - what a list found yields to live changes;
    - an own object that is new, gone, marked for deletion or has a new spec is new input; nothing else is, so that
      neither children nor status, labels and annotations cut a back-off short;
    - a predicate that fails passes, and says so in the log: a change is not lost by a mistake in one.
    """

    def __init__(self, trigger: Trigger, *, controller: str) -> None:
        self._trigger = trigger
        self._kind = kind_of(trigger.kind).kind
        self._controller = controller

    def route(self, event: Event) -> list[Route]:
        """Give the keys that an event wakes."""
        if not self._passes(event):
            return []
        keys = dict.fromkeys(self._keys_of(event))
        if event.writer is not None and not (self._trigger.primary and event.type is EventType.REMOVED):
            keys = {key: None for key in keys if event.writer != (self._controller, key)}
        if not keys:
            return []
        wake = self._wake(event)
        priority = Priority.LOW if event.listed else Priority.NORMAL
        fresh = self._trigger.primary and _is_new_input(event)
        return [Route(key, wake, priority, fresh) for key in keys]

    def _wake(self, event: Event) -> EnqueueReason:
        entry = event.entry
        return EnqueueReason(
            self._trigger.name, self._kind, entry.key, str(entry.version), event.type.value, event.listed
        )

    def _passes(self, event: Event) -> bool:
        try:
            return self._trigger.predicate(event)
        except AUTHORS_ERRORS:
            facts = {"trigger": self._trigger.name, "controller": self._controller, "key": str(event.key)}
            _log.exception("A predicate failed", extra=facts)
            return True

    def _keys_of(self, event: Event) -> Iterable[Key]:
        try:
            return list(self._trigger.mapper(event))
        except AUTHORS_ERRORS:
            facts = {"trigger": self._trigger.name, "controller": self._controller, "key": str(event.key)}
            _log.exception("A mapper failed", extra=facts)
            return ()


def _is_new_input(event: Event) -> bool:
    old, new = event.old, event.new
    if old is None or new is None or old.deleting != new.deleting:
        return True
    return old.generation != new.generation if new.generation else content_changed(old, new)
