"""Snapshots: the state of controllers, caches, leases and events that metrics are made of, as plain values.

Metrics do not import queues, caches or leases. The package that owns them passes functions that return these
snapshots; the functions are called at each scrape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

__all__ = ["CacheSnapshot", "ControllerSnapshot", "EventSnapshot", "LeaseSnapshot", "MetricValue", "SnapshotSources"]


@dataclass(frozen=True, slots=True)
class MetricValue:
    """A number of a component, and the metric that shows it; the name of a counter is without `_total`."""

    kind: Literal["gauge", "counter"]
    name: str
    text: str
    value: float

    @classmethod
    def all_of(cls, stats: Any) -> tuple[MetricValue, ...]:
        """Return the fields of a dataclass that declare a metric: `field(metadata={"metric": (kind, name, text)})`."""
        found = []
        for one in fields(stats):
            if "metric" in one.metadata:
                kind, name, text = one.metadata["metric"]
                found.append(cls(kind, name, text, getattr(stats, one.name)))
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSnapshot:
    """A controller and its queue at one moment. Counts begin at the start of the process; durations are seconds.

    `unfinished` is the sum of the durations of all active reconciles, `metrics` are shown as they are.
    """

    name: str
    workers: int = 0
    active_workers: int = 0
    ready: int = 0
    adds: int = 0
    retries: int = 0
    longest_running: float = 0.0
    unfinished: float = 0.0
    metrics: tuple[MetricValue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSnapshot:
    """One cached collection. `idle` is the time in seconds since the server last sent data for it."""

    kind: str
    namespace: str = ""
    state: str = ""
    synced: bool = False
    objects: int = 0
    bytes: int = 0
    idle: float = 0.0
    watches: int = 0
    lists: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSnapshot:
    """A lease, and whether this process is its leader."""

    name: str
    is_leader: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSnapshot:
    """The number of recorded events that were written, and of those that were dropped, by reason."""

    written: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)


Controllers: TypeAlias = Callable[[], Iterable[ControllerSnapshot]]
Caches: TypeAlias = Callable[[], Iterable[CacheSnapshot]]
Leases: TypeAlias = Callable[[], Iterable[LeaseSnapshot]]
Events: TypeAlias = Callable[[], EventSnapshot | None]


@dataclass(frozen=True, kw_only=True)
class SnapshotSources:
    """The functions that return the snapshots. They only read, and may be called from another thread."""

    controllers: Controllers = tuple
    caches: Caches = tuple
    leases: Leases = tuple
    events: Events = lambda: None
