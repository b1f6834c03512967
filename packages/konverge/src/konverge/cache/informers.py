"""Mirrors: one collection followed and kept, a reflector and its store, shared by all who read it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from konverge.cache.backoff import Patience, Spacing
from konverge.cache.options import CacheOptions
from konverge.cache.reflector import Reflector
from konverge.cache.reflector_stats import ReflectorStats, State
from konverge.cache.source import Source
from konverge.cache.store import Store, StoreStats
from konverge.errors import Forbidden, NotFound
from konverge.objects import Kind
from konverge.wire.watching import Selection

__all__ = ["Informer", "InformerStats", "SourceOf"]


class SourceOf(Protocol):
    """Gives the collection of a kind, in a namespace or in all; `Client.collection` does."""

    def __call__(self, kind: Kind, *, namespace: str, metadata_only: bool) -> Source: ...


@dataclass(frozen=True, slots=True)
class InformerStats:
    """A mirror in numbers: what it follows, how that goes, and what it holds. `waits_for` is "" once it is synced."""

    kind: Kind
    namespace: str
    labels: str
    fields: str
    waits_for: str
    reflector: ReflectorStats
    store: StoreStats


class Informer:
    """One collection, in one namespace or in all, with one selection.

    It is the sink of its reflector: the store does the work, and the mirror notes when the first list is in.
    """

    def __init__(
        self,
        kind: Kind,
        namespace: str,
        options: CacheOptions,
        *,
        source_of: SourceOf,
        patience: Patience | None = None,
        spacing: Spacing | None = None,
    ) -> None:
        self.kind = kind
        self.namespace = namespace
        self.options = options
        self.store = Store(kind, namespace=namespace, options=options)
        self.synced = asyncio.Event()
        self.readers = 0  # how many share it; the last one to leave ends it
        self.begin, self.put, self.remove = self.store.begin, self.store.put, self.store.remove
        self.progress = self.store.progress
        self._reflector = Reflector(
            source_of(kind, namespace=namespace, metadata_only=bool(options.metadata_only)),
            self,
            kind=kind.kind,
            selection=Selection(label_selector=options.labels or "", field_selector=options.fields or ""),
            patience=patience,
            spacing=spacing,
        )

    async def swap(self, resource_version: str) -> None:
        """End a list; with the first one this mirror is synced."""
        await self.store.swap(resource_version)
        self.synced.set()

    async def run(self) -> None:
        """Follow the collection until this is cancelled."""
        await self._reflector.run()

    @property
    def follows(self) -> bool:
        """Whether its watch is open now."""
        return self._reflector.state is State.WATCHING

    @property
    def openings(self) -> int:
        """How often its watch was opened."""
        return self._reflector.openings

    def waits_for(self) -> str:
        """Say why it is not synced yet; "" when it is."""
        if self.synced.is_set():
            return ""
        try:
            stats = self._reflector.stats()
        except RuntimeError:
            return "the first list is not complete"  # a reader in another thread: the reasons are on the loop
        where = f" in namespace {self.namespace}" if self.namespace else ""
        if isinstance(stats.error, Forbidden):
            return f"{stats.error.verb or 'list'} is forbidden (needs list, watch on {self.kind.resource}{where})"
        if isinstance(stats.error, NotFound):
            return f"the server does not serve {self.kind.resource} (is its CRD installed, is the version right?)"
        if stats.error is not None:
            return str(stats.error)
        return "it is not started" if stats.state is State.IDLE else f"the first list is not complete{where}"

    def stats(self) -> InformerStats:
        """Give the mirror in numbers."""
        return InformerStats(
            self.kind,
            self.namespace,
            self.options.labels or "",
            self.options.fields or "",
            self.waits_for(),
            self._reflector.stats(),
            self.store.stats(),
        )
