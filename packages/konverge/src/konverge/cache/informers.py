"""Informers: the reflector and the store of one collection, shared by all its listers."""

from __future__ import annotations

import asyncio
from typing import Protocol

from msgspec import Struct

from konverge.cache.backoff import Stagger
from konverge.cache.changes import Changes
from konverge.cache.entries import parse_version
from konverge.cache.options import CacheOptions, ReflectorOptions
from konverge.cache.reflector import Reflector
from konverge.cache.reflector_stats import ReflectorState, ReflectorStats
from konverge.cache.source import Source
from konverge.cache.store import Store, StoreStats
from konverge.errors import Forbidden, NotFound
from konverge.objects import Key, Kind
from konverge.wire.list_watch import Selection

__all__ = ["Informer", "InformerStats", "SourceFactory"]


class SourceFactory(Protocol):
    """Returns the collection of a kind, in one namespace or in all; `Client.collection` is one."""

    def __call__(self, kind: Kind, *, namespace: str, metadata_only: bool) -> Source: ...


class InformerStats(Struct, frozen=True):
    """One informer: what it watches, and the stats of its reflector and its store.

    `not_synced_reason` is "" once the informer is synced. `stale_for` is how long the store has been older than an
    object that was read from the server, None when it is not.
    """

    kind: Kind
    namespace: str
    labels: str
    fields: str
    not_synced_reason: str
    reflector: ReflectorStats
    store: StoreStats
    stale_for: float | None = None


class Informer:
    """One collection, in one namespace or in all, with one selection.

    It is the sink of its reflector. The store does the work; the informer records when the first list is complete.
    """

    def __init__(
        self,
        kind: Kind,
        namespace: str,
        options: CacheOptions,
        *,
        source_factory: SourceFactory,
        reflector_options: ReflectorOptions | None = None,
        stagger: Stagger | None = None,
        changes: Changes | None = None,
    ) -> None:
        self.kind = kind
        self.namespace = namespace
        self.options = options
        self.store = Store(kind, namespace=namespace, options=options)
        self.synced = asyncio.Event()
        self._live_version = -1  # the newest that was read from the server, and since when the store was older
        self._live_since = 0.0
        self.reference_count = 0  # listers that share it; it stops when the last one releases it
        self.begin, self.put, self.remove = self.store.begin, self.store.put, self.store.remove
        self.progress, self.newest = self.store.progress, self.store.newest
        self.restart_history = self.store.restart_history
        self._reflector = Reflector(
            source_factory(kind, namespace=namespace, metadata_only=bool(options.metadata_only)),
            self,
            kind=kind.kind,
            selection=Selection(label_selector=options.labels or "", field_selector=options.fields or ""),
            options=reflector_options,
            stagger=stagger,
        )
        self._changes = changes or Changes()
        self._reflector.on_change = self._changes.notify

    async def swap(self, resource_version: str) -> None:
        """Commit a list; after the first one this informer is synced."""
        await self.store.swap(resource_version)
        self.synced.set()
        self._changes.notify()

    async def run(self) -> None:
        """List and watch the collection until cancelled."""
        await self._reflector.run()

    def record_live_version(self, key: Key, version: str) -> None:
        """Record the version of an object that was read from the server."""
        number = parse_version(version)
        selects = self.options.labels or self.options.fields or (self.namespace and self.namespace != key.namespace)
        if number is None or selects:
            return
        if not self._is_stale():
            self._live_since = asyncio.get_running_loop().time()
        self._live_version = max(self._live_version, number)

    def _is_stale(self) -> bool:
        delivered = parse_version(self.store.version)
        return delivered is not None and delivered < self._live_version

    @property
    def version(self) -> str:
        """The version up to which everything is delivered."""
        return self.store.version

    @property
    def is_watching(self) -> bool:
        """Whether the watch is open now."""
        return self._reflector.state is ReflectorState.WATCHING

    @property
    def watch_count(self) -> int:
        """How often the watch was opened."""
        return self._reflector.watch_count

    @property
    def is_missing(self) -> bool:
        """Whether the kind is optional and the server has not served it so far."""
        return bool(self.options.optional) and not self.synced.is_set() and isinstance(self._reflector.error, NotFound)

    def not_synced_reason(self) -> str:
        """Return why the informer is not synced yet; "" when it is, or when nothing waits for it."""
        if self.synced.is_set() or self.is_missing:
            return ""
        try:
            stats = self._reflector.stats()
        except RuntimeError:
            return "the first list is not complete"  # called from another thread: the reason needs the event loop
        where = f" in namespace {self.namespace}" if self.namespace else ""
        if isinstance(stats.error, Forbidden):
            return f"{stats.error.verb or 'list'} is forbidden (needs list, watch on {self.kind.resource}{where})"
        if isinstance(stats.error, NotFound):
            return f"the server does not serve {self.kind.resource} (is its CRD installed, is the version right?)"
        if stats.error is not None:
            return str(stats.error)
        return "it is not started" if stats.state is ReflectorState.IDLE else f"the first list is not complete{where}"

    def stats(self) -> InformerStats:
        """Return the stats of the informer."""
        return InformerStats(
            self.kind,
            self.namespace,
            self.options.labels or "",
            self.options.fields or "",
            self.not_synced_reason(),
            self._reflector.stats(),
            self.store.stats(),
            self._reflector.now() - self._live_since if self._is_stale() else None,
        )
