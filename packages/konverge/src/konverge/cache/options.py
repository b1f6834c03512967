"""Options of the cache: how a kind is cached, and how long a reflector waits."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from konverge.cache.decoder import Transform
from konverge.cache.indexes import IndexFunc
from konverge.objects import FieldSelector, LabelSelector

__all__ = ["CacheOptions", "ReflectorOptions"]


@dataclass(frozen=True, kw_only=True)
class CacheOptions:
    """How the objects of a kind are selected and stored. A field that is None takes the value of the defaults.

    - `namespaces`: cache only these; () means all of them.
    - `labels`, `fields`: selectors, evaluated by the server; "" selects everything.
    - `metadata_only`: request and store only metadata.
    - `compress`: store objects compressed (needs `konverge[zstd]`); a read then costs a few microseconds more.
    - `transform`: a function that changes an object before it is stored, to drop fields that nothing reads.
    - `manager`: the field manager whose applied fields are stored; all other managedFields are dropped.
    - `ordered`: False for a server whose resourceVersions are not increasing numbers; own writes are then visible only
      after the watch delivers them.
    - `optional`: the server may not serve this kind; nothing waits for it until it does.
    - `indexes`: by name; see `by_path` and `by_function`.
    """

    namespaces: tuple[str, ...] | None = None
    labels: str | None = None
    fields: str | None = None
    metadata_only: bool | None = None
    compress: bool | None = None
    transform: Transform | None = None
    manager: str | None = None
    ordered: bool | None = None
    optional: bool | None = None
    indexes: tuple[tuple[str, IndexFunc], ...] | None = None

    def __post_init__(self) -> None:
        LabelSelector.parse(self.labels or "")
        FieldSelector.parse(self.fields or "")
        if isinstance(self.namespaces, str):
            raise TypeError(f"namespaces is a tuple: write namespaces=({self.namespaces!r},)")

    def over(self, defaults: CacheOptions) -> CacheOptions:
        """Return these options, with the values of `defaults` where these are None."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(defaults, **{name: value for name, value in values.items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorOptions:
    """Timeouts and backoff of a reflector, in seconds.

    - `idle_timeout`: a watch that sends nothing for this long is opened again.
    - `initial_events_timeout`: the same for a streaming list, which may take ten times as long in all.
    - `min_watch_timeout`, `max_watch_timeout`: a watch lasts a random time in this range.
    - `healthy_after`: a watch that stays open for this long ends the backoff.
    - `initial_backoff`, `max_backoff`, `long_failure_after`, `long_failure_backoff`: see `konverge.cache.backoff`.
    """

    idle_timeout: float = 45.0
    initial_events_timeout: float = 30.0
    min_watch_timeout: float = 300.0
    max_watch_timeout: float = 600.0
    healthy_after: float = 4.0
    initial_backoff: float = 1.0
    max_backoff: float = 8.0
    long_failure_after: float = 60.0
    long_failure_backoff: float = 24.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)}: write a number of seconds above 0")
        if self.min_watch_timeout > self.max_watch_timeout:
            raise ValueError("min_watch_timeout is greater than max_watch_timeout")
