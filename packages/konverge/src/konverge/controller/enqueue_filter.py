"""The decision whether a key is enqueued: it knows the writes of each active reconcile, and which events are echoes.

An echo is the watch event of a write of the key's own reconcile. It must not enqueue the key again, or a reconcile that
writes would never end. Events come in two orders:

1. The response first. Then the cache knows who made the version, and the event names its writer.
2. The event first. Then nobody knows whose it is before the response arrives. A request that may be an echo is held
   until the reconcile ends; then it is dropped if a write of this reconcile made its version, and enqueued otherwise.

A key that is in flight does not run before it is done, so holding a request delays nothing. Only what is certain is an
echo: a version is the reconcile's own if the write created the object, or required the version that it replaced and got
another one. The response to an apply that changes nothing has the version that another client made. A change found by
a list may hide others, and a deletion is more than the write that allowed it; both are always enqueued.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from konverge.client import WriteEvent
from konverge.objects import Key
from konverge.queue import Priority, WorkQueue
from konverge.reconcile import EnqueueEvent, Observers
from konverge.triggers import EnqueueReason, EnqueueRequest

__all__ = ["EnqueueFilter"]

_MAX_HELD: Final = 100
"""Requests that are held for one key; further ones are enqueued, which is never wrong."""

_Version: TypeAlias = tuple[str, Key, str]
"""Kind, key and version of an object."""


@dataclass(slots=True)
class _Active:
    """An active reconcile: the versions that its writes made, and the requests that may be echoes of them."""

    written: set[_Version] = field(default_factory=set)
    pending: list[tuple[EnqueueRequest, float]] = field(default_factory=list)  # with the time of each


class EnqueueFilter:
    """Decide which keys of a controller are enqueued.

    Promises:

    - a change by anybody else enqueues every key that its trigger names: at once, or at the end of the key's reconcile
      before the key is done;
    - an echo enqueues nothing;
    - nothing that observers do, drop or raise changes a decision;
    - for each key that is being reconciled a bounded number of requests is stored, and nothing for other keys.
    """

    def __init__(self, controller: str, queue: WorkQueue[Key], observers: Observers) -> None:
        self._controller = controller
        self._queue = queue
        self._observers = observers
        self._active: dict[Key, _Active] = {}

    def add(self, request: EnqueueRequest) -> None:
        """Enqueue the key of a request, hold the request, or drop it as an echo."""
        if request.writer is not None and request.writer == (self._controller, request.key):
            return
        active, now = self._active.get(request.key), asyncio.get_running_loop().time()
        if active is None or not _may_be_echo(request.reason) or len(active.pending) >= _MAX_HELD:
            self._enqueue(request, now)
        elif _version_of(request.reason) not in active.written:
            active.pending.append((request, now))

    def add_key(self, key: Key, reason: EnqueueReason, *, priority: Priority = Priority.NORMAL) -> None:
        """Enqueue a key for another reason than a change in the cluster."""
        self.add(EnqueueRequest(key, reason, priority, False))

    def begin(self, key: Key) -> None:
        """Record that a reconcile of a key begins."""
        self._active[key] = _Active()

    def record_write(self, key: Key, write: WriteEvent) -> None:
        """Record a write by the active reconcile of a key."""
        active = self._active.get(key)
        if active is not None and write.made_version:
            active.written.add((write.kind.kind, write.key, write.version))

    def end(self, key: Key) -> None:
        """Record that the reconcile of a key has ended, before its key is done: enqueue what is no echo."""
        active = self._active.pop(key)
        for request, since in active.pending:
            if _version_of(request.reason) not in active.written:
                self._enqueue(request, since)

    def _enqueue(self, request: EnqueueRequest, since: float) -> None:
        self._queue.add(request.key, priority=request.priority, reset_backoff=request.reset_backoff)
        self._observers.enqueue(EnqueueEvent(self._controller, request.key, request.reason, since))


def _may_be_echo(reason: EnqueueReason) -> bool:
    return bool(reason.kind) and not reason.listed and reason.what != "deleted"


def _version_of(reason: EnqueueReason) -> _Version:
    return reason.kind, reason.key, reason.version
