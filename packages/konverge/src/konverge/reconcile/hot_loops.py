"""Detect hot loops: reconciles that keep rewriting an object although nothing changed.

Another client sets the same fields, or the desired state is never the same twice: it holds a date, a random name, or a
list in changing order. A hot loop is counted, logged at growing intervals, and recorded in the journal; no reconcile is
delayed because of it. Rules that hold here:

1. A reconcile counts if it wrote the object and had no new input. A change of its own spec resets the count. An event
   of a channel, a change of an object that it does not write, and a status of the written object that changed (a
   rollout, step by step) leave the count unchanged, unless the reconcile writes the same content as before.
2. A reconcile that succeeds without writing the object resets the count, unless the next write within the hour produces
   the same content: then another client changes it back. A failed reconcile does not reset it.
3. These do not count: a write of the status, which may differ in each reconcile and enqueues no key; a write of a
   Lease, whose purpose is to be written; and a write that changes nothing.
4. Fields are named, their values never.
5. The number of tracked keys is bounded; keys that have not written for some time are replaced.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from konverge.cache import Cache
from konverge.client import WriteEvent
from konverge.objects import AnyObject, Key, Resource
from konverge.reconcile.journal_records import Reason
from konverge.reconcile.observers import ActiveReconcile, EnqueueEvent, ReconcileEnd, ReconcileObserver
from konverge.reconcile.write_history import ObjectKey, WriteHistory

__all__ = ["HOT_LOOP_RECONCILES", "HotLoopDetector"]

_log = logging.getLogger("konverge.reconcile")

HOT_LOOP_RECONCILES: Final = 10
"""The number of reconciles in a row that makes a hot loop."""

_FIRST_INTERVAL: Final = 600.0
_MAX_INTERVAL: Final = 86_400.0
_MAX_KEYS: Final = 1000
_MAX_WAITING: Final = 10_000
_MAX_CAUSES: Final = 10
_NO_CAUSES: Final[list[Reason]] = []
_REPLACEABLE_AFTER: Final = 60.0
_IGNORED_GROUP: Final = "coordination.k8s.io"


@dataclass(slots=True)
class _KeyState:
    """The write histories of one key, by object."""

    spec_version: str  # identifies the spec of the key's own object
    last_write: float  # by the event loop's clock
    histories: dict[ObjectKey, WriteHistory] = field(default_factory=dict)
    active: bool = False  # the active reconcile has written
    spec_changed: bool = False

    def end_reconcile(self, *, succeeded: bool, new_input: bool) -> tuple[ObjectKey, WriteHistory] | None:
        """Count a reconcile; return the history with the highest count among those that it added to."""
        for history in self.histories.values():
            history.end_reconcile(succeeded=succeeded, spec_changed=self.spec_changed, new_input=new_input)
        self.active = self.spec_changed = False
        longest: tuple[ObjectKey, WriteHistory] | None = None
        for obj, history in self.histories.items():
            if history.counts and (longest is None or history.reconciles > longest[1].reconciles):
                longest = obj, history
        return longest


@dataclass(slots=True)
class _LogLimit:
    """When a hot loop of a key may be logged again."""

    next_log: float
    interval: float = _FIRST_INTERVAL


class HotLoopDetector(ReconcileObserver):
    """Detect the hot loops of one controller: an observer that sets the warning of each reconcile of a hot loop.

    Promises: a reconcile of a key that has not written lately costs two dict lookups. At most 1000 keys are tracked. A
    key that has reconciled, and has written nothing for an hour, is dropped, except for when it may be logged again.
    """

    def __init__(self, controller: str, cache: Cache) -> None:
        self._controller = controller
        self._cache = cache
        self._keys: dict[Key, _KeyState] = {}  # least recently reconciled first
        self._log_limits: dict[Key, _LogLimit] = {}
        self._causes: dict[Key, list[Reason]] = {}  # of keys that wait: what may be new input, first enqueued first

    def __len__(self) -> int:
        return len(self._keys)

    def enqueue(self, event: EnqueueEvent) -> None:
        """Store a reason that may bring new work [1]; lists and changes of the own object do not."""
        key, reason = event.key, event.reason
        if reason.listed or (reason.key == key if reason.kind else reason.what != "channel"):
            return
        causes = self._causes.setdefault(key, [])
        if len(causes) < _MAX_CAUSES:
            causes.append(reason)
        if len(self._causes) > _MAX_WAITING:
            del self._causes[next(iter(self._causes))]

    def begin(self, reconcile: ActiveReconcile) -> None:
        """Record the start of a reconcile."""
        causes = self._causes.pop(reconcile.key, None)
        if causes:
            reconcile.state[self] = causes
        state = self._keys.get(reconcile.key)
        if state is not None:
            for obj, history in state.histories.items():
                history.begin_reconcile(obj, self._cache)

    def write(self, reconcile: ActiveReconcile, write: WriteEvent) -> None:
        """Record a write, before it is recorded in the cache."""
        key, owner = reconcile.key, reconcile.obj
        if owner is None:
            return
        state = self._keys.get(key)
        counts = not write.subresource and write.kind.group != _IGNORED_GROUP
        if state is None:
            if not counts or not self._can_add_key():
                return
            state = self._keys[key] = _KeyState(_spec_version_of(owner), _now())
        if not state.active:  # the first write of this reconcile
            spec_version = _spec_version_of(owner)
            state.active, state.spec_changed = True, spec_version != state.spec_version
            state.spec_version = spec_version
        if write.key == key and write.kind == reconcile.kind:
            # A write of the key's own object is not a change of its spec by a user.
            state.spec_version = str(write.generation or write.version)
        if counts:
            state.last_write = _now()
            history = state.histories.setdefault((write.kind, write.key), WriteHistory(state.last_write))
            history.record_write(write, write.version, cache=self._cache, now=state.last_write)

    def end(self, reconcile: ActiveReconcile, end: ReconcileEnd) -> None:
        """Record the end of a reconcile; set a warning on that of a hot loop."""
        key = reconcile.key
        state = self._keys.pop(key, None)
        if state is None:
            return
        causes: list[Reason] = reconcile.state.get(self, _NO_CAUSES)
        new_input = bool(causes) and any(_is_new_input(one, state.histories) for one in causes)
        longest = state.end_reconcile(succeeded=not end.error, new_input=new_input)
        now = _now()
        for obj, history in tuple(state.histories.items()):
            if history.is_expired(now):
                del state.histories[obj]
        if state.histories:
            self._keys[key] = state
        if longest is not None and longest[1].reconciles >= HOT_LOOP_RECONCILES:
            reconcile.warning = self._report(key, *longest)

    def forget(self, key: Key) -> None:
        """Drop a key whose object is gone."""
        self._keys.pop(key, None)
        self._causes.pop(key, None)
        self._log_limits.pop(key, None)

    def _can_add_key(self) -> bool:
        """Report whether there is space for one more key; drop the oldest key if it has not written lately."""
        if len(self._keys) < _MAX_KEYS:
            return True
        oldest = next(iter(self._keys))
        if _now() - self._keys[oldest].last_write < _REPLACEABLE_AFTER:
            return False
        del self._keys[oldest]
        return True

    def _report(self, key: Key, obj: ObjectKey, history: WriteHistory) -> str:
        kind, name = obj
        text = f"wrote {kind.kind} {name} in {history.reconciles} reconciles in a row without new input: "
        text += history.describe()
        if self._is_log_due(key):
            facts = {"controller": self._controller, "key": str(key), "object": f"{kind.kind} {name}", "reason": text}
            _log.warning("hot loop detected", extra=facts)
        return text

    def _is_log_due(self, key: Key) -> bool:
        now = _now()
        limit = self._log_limits.get(key)
        if limit is None:
            self._log_limits[key] = _LogLimit(now + _FIRST_INTERVAL)
            return True
        if now < limit.next_log:
            return False
        paused = now >= limit.next_log + limit.interval
        limit.interval = _FIRST_INTERVAL if paused else min(_MAX_INTERVAL, limit.interval * 2)
        limit.next_log = now + limit.interval
        return True


def _now() -> float:
    return asyncio.get_running_loop().time()


def _is_new_input(reason: Reason, written: Iterable[ObjectKey]) -> bool:
    """Report whether a reason is the change of an object that the key does not write, or of a channel."""
    return all((kind.kind, name) != (reason.kind, reason.key) for kind, name in written)


def _spec_version_of(obj: AnyObject) -> str:
    generation = obj.metadata.generation if isinstance(obj, Resource) else obj.metadata.get("generation")
    # Kinds without a generation (ConfigMap, Service) have only their resourceVersion to tell two states apart.
    return str(generation or obj.resource_version)
