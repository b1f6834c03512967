"""Figures: what the rooms above give to metrics, as plain values.

Metrics know nothing of queues, caches and leases. Whoever has them gives functions that return these, and they are
called when somebody scrapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["CacheSnapshot", "ControllerSnapshot", "EventSnapshot", "LeaseSnapshot", "Sources"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSnapshot:
    """A controller and its queue at one moment; counts are from the start, durations in seconds.

    `unfinished` is how long all running reconciles have been running, added up.
    """

    name: str
    workers: int = 0
    busy: int = 0
    ready: int = 0
    delayed: int = 0
    adds: int = 0
    retries: int = 0
    oldest_wait: float = 0.0
    longest_running: float = 0.0
    unfinished: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSnapshot:
    """One collection that is followed; `silent` is how long ago the server was last heard of it."""

    kind: str
    namespace: str = ""
    state: str = ""
    synced: bool = False
    objects: int = 0
    bytes: int = 0
    silent: float = 0.0
    watches: int = 0
    lists: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSnapshot:
    """A lease, and whether this process holds it."""

    name: str
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSnapshot:
    """What became of the events that were recorded; `dropped` by reason."""

    written: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)


Controllers: TypeAlias = Callable[[], Iterable[ControllerSnapshot]]
Caches: TypeAlias = Callable[[], Iterable[CacheSnapshot]]
Leases: TypeAlias = Callable[[], Iterable[LeaseSnapshot]]
Events: TypeAlias = Callable[[], EventSnapshot | None]


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Where figures come from. The functions only look; they may be called from another thread."""

    controllers: Controllers = tuple
    caches: Caches = tuple
    leases: Leases = tuple
    events: Events = lambda: None
