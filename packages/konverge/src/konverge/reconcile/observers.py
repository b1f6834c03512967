"""Observers of reconciles: what metrics, the journal, the hot-loop detector and traces are made of.

An observer is called on the event loop and must not block. It cannot change what happens: its return value is ignored,
and an error is logged and affects neither the reconcile nor the other observers.
"""

from __future__ import annotations

import itertools
import logging
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct

from konverge.client import WriteEvent
from konverge.objects import AnyObject, Key, Kind
from konverge.reconcile.journal_records import Reason

__all__ = [
    "ActiveReconcile",
    "EnqueueEvent",
    "Observers",
    "Outcome",
    "ReconcileEnd",
    "ReconcileObserver",
    "new_reconcile_id",
]

_log = logging.getLogger("konverge.reconcile")

_prefix = secrets.token_hex(4)
_numbers = itertools.count(1)


class Outcome(StrEnum):
    """How a reconcile ended: the label `result` of the metrics."""

    SUCCESS = "success"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"
    TERMINAL = "terminal"
    RETRY = "retry"
    CONFLICT = "conflict"
    REFUSED = "refused"


@dataclass(slots=True, eq=False, kw_only=True)
class ActiveReconcile:
    """One reconcile of one key, from its begin to its end.

    `queue_wait` is for how many seconds the key was ready. `obj` is the object as it was read, None before that and
    when it is gone. `warning` and `generation_latencies` are set by observers for those after them. `state` is for
    observers: each may store a value under itself.
    """

    controller: str
    kind: Kind
    key: Key
    reconcile_id: str
    attempt: int = 1
    queue_wait: float = 0.0
    obj: AnyObject | None = None
    warning: str = ""
    generation_latencies: list[float] = field(default_factory=list)
    state: dict[object, Any] = field(default_factory=dict)


class ReconcileEnd(Struct, frozen=True):
    """How a reconcile ended: `result` is a text about its result, `error` one about its error, "" if there was none."""

    outcome: Outcome
    result: str = ""
    error: str = ""
    seconds: float = 0.0


class EnqueueEvent(NamedTuple):
    """A key that was enqueued: why, and when by the loop's clock."""

    controller: str
    key: Key
    reason: Reason
    since: float


class ReconcileObserver:
    """Receives what happens to the keys of controllers; override what you need.

    Calls for one key come in this order: `enqueue` any number of times, `begin`, `read` and `write` any number of
    times, `end`.
    """

    def enqueue(self, event: EnqueueEvent) -> None:
        """Record that a key is enqueued because of a change, a timer or a channel."""

    def begin(self, reconcile: ActiveReconcile) -> None:
        """Record that a reconcile begins; its object is not read yet."""

    def read(self, reconcile: ActiveReconcile, kind: str, key: Key, found: str) -> None:
        """Record a read by `Context`: of which object or namespace, and the version or number that was found."""

    def write(self, reconcile: ActiveReconcile, write: WriteEvent) -> None:
        """Record a successful write, before any cache knows of it."""

    def end(self, reconcile: ActiveReconcile, end: ReconcileEnd) -> None:
        """Record that a reconcile has ended."""

    def forget(self, key: Key) -> None:
        """Record that the object of a key is gone."""


class Observers:
    """The observers of a controller: each attribute calls the method of that name of every observer that has it."""

    def __init__(self, *observers: ReconcileObserver) -> None:
        for one in observers:
            if not isinstance(one, ReconcileObserver):
                raise TypeError(f"an observer is an instance of a subclass of ReconcileObserver, got {one!r:.80}")
        self.enqueue: Callable[[EnqueueEvent], None] = _call_all(observers, "enqueue")
        self.begin: Callable[[ActiveReconcile], None] = _call_all(observers, "begin")
        self.read: Callable[[ActiveReconcile, str, Key, str], None] = _call_all(observers, "read")
        self.write: Callable[[ActiveReconcile, WriteEvent], None] = _call_all(observers, "write")
        self.end: Callable[[ActiveReconcile, ReconcileEnd], None] = _call_all(observers, "end")
        self.forget: Callable[[Key], None] = _call_all(observers, "forget")


def new_reconcile_id() -> str:
    """Return an id that no other reconcile has."""
    return f"{_prefix}-{next(_numbers):06x}"


def _call_all(observers: Iterable[ReconcileObserver], name: str) -> Callable[..., None]:
    default = getattr(ReconcileObserver, name)
    methods = tuple(getattr(one, name) for one in observers if getattr(type(one), name) is not default)

    def call(*args: object) -> None:
        for method in methods:
            try:
                method(*args)
            except Exception:
                _log.exception("observer failed", extra={"observer": f"{type(method.__self__).__name__}.{name}"})

    return call
