"""The cache: a local copy of the declared kinds of a cluster, each collection once, shared by all readers.

Rules that every change to this file keeps:

1. A kind is cached only if it was declared. A read of another kind goes to the server, which is logged once.
2. Informers are shared: one kind, namespace and selection has one informer, however many listers read it.
3. The options of a declaration override those of the kind, which override those of the cache.
4. An own write is recorded in every collection of its kind before the writer continues.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar, overload

from msgspec import Struct

from konverge.cache.backoff import Stagger
from konverge.cache.changes import Changes
from konverge.cache.entries import Entry
from konverge.cache.informers import Informer, InformerStats, SourceFactory
from konverge.cache.listers import Lister
from konverge.cache.options import CacheOptions, ReflectorOptions
from konverge.errors import NotFound, NotSynced
from konverge.objects import Key, Kind, Resource, Unstructured, kind_of

__all__ = ["Cache", "CacheStats", "ServerReader"]

_log = logging.getLogger("konverge.cache")

T = TypeVar("T", bound=Resource)

V = TypeVar("V")

Objects: TypeAlias = list[V]


class ServerReader(Protocol):
    """Reads kinds that are not cached from the server; a client is one."""

    async def get(self, kind: Any, name: str | Key, *, namespace: str | None = None) -> Any:
        """Read one object.

        Raises: NotFound when it does not exist.
        """
        ...

    async def list(self, kind: Any, *, namespace: str = "", labels: str = "") -> Any:
        """Read a collection."""
        ...


class CacheStats(Struct, frozen=True):
    """The stats of each informer of a cache."""

    informers: tuple[InformerStats, ...]

    @property
    def objects(self) -> int:
        """The number of cached objects."""
        return sum(informer.store.objects for informer in self.informers)

    @property
    def bytes(self) -> int:
        """The number of bytes of JSON, as stored."""
        return sum(informer.store.bytes for informer in self.informers)

    @property
    def not_synced(self) -> dict[str, str]:
        """The reason why a kind is not synced, by kind."""
        return _reasons(self.informers)


class Cache:
    """Cached collections of a cluster, watched while this is open: `async with Cache(...) as cache`.

    Kinds may be declared before or after it is opened. `by_kind` sets options for kinds, whoever declares them.
    """

    def __init__(
        self,
        source_factory: SourceFactory,
        *,
        server: ServerReader | None = None,
        options: CacheOptions | None = None,
        by_kind: Mapping[Kind, CacheOptions] | None = None,
        reflector_options: ReflectorOptions | None = None,
    ) -> None:
        self._source_factory = source_factory
        self._server = server
        self._options = options or CacheOptions()
        self._by_kind = dict(by_kind or {})
        self._reflector_options = reflector_options
        self._stagger = Stagger()
        self.changes = Changes()
        """Notified when an informer is synced, opens or ends a watch, fails or recovers, starts or stops."""
        self._informers: dict[tuple[Kind, str, CacheOptions], Informer] = {}
        self._tasks: dict[Informer, asyncio.Task[None]] = {}
        self._listers: list[Lister[Any]] = []
        self._complete: dict[Kind, Objects[Lister[Any]]] = {}  # by kind, those that have whole objects
        self._group: asyncio.TaskGroup | None = None
        self._uncached: set[Kind] = set()

    async def __aenter__(self) -> Self:
        self._group = await asyncio.TaskGroup().__aenter__()
        for informer in self._informers.values():
            self._start(informer)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        group, self._group = self._group, None
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        if group is not None:
            await group.__aexit__(None, None, None)

    # Declarations

    @overload
    def declare(self, kind: type[T], options: CacheOptions | None = None) -> Lister[T]: ...
    @overload
    def declare(self, kind: Kind, options: CacheOptions | None = None) -> Lister[Unstructured]: ...
    def declare(self, kind: type[Any] | Kind, options: CacheOptions | None = None) -> Lister[Any]:
        """Cache a kind and return a lister for it; equal declarations share their informers."""
        known = kind_of(kind)
        defaults = self._by_kind.get(known, CacheOptions()).over(self._options)
        lister: Lister[Any] = Lister(known, _type_of(kind), (options or CacheOptions()).over(defaults), pool=self)
        self._listers.append(lister)
        if _is_complete(lister.options):
            self._complete.setdefault(known, []).append(lister)
        return lister

    def remove_lister(self, lister: Lister[Any]) -> None:
        """Undo a declaration; informers that no other lister uses are stopped."""
        if lister in self._listers:
            self._listers.remove(lister)
            if _is_complete(lister.options):
                self._complete[lister.kind].remove(lister)
            lister.close()

    @overload
    def lister(self, kind: type[T]) -> Lister[T]: ...
    @overload
    def lister(self, kind: Kind) -> Lister[Unstructured]: ...
    def lister(self, kind: type[Any] | Kind) -> Lister[Any]:
        """Return a lister of a declared kind, the one with the most namespaces.

        Raises: ValueError when the kind was not declared, or only with selectors, a transform or metadata only.
        """
        known = kind_of(kind)
        found = self._complete.get(known)
        if not found:
            raise ValueError(f"{known.kind} is not cached; declare it with .owns() or .watches()")
        broadest = max(found, key=lambda lister: ("" in lister.namespaces, len(lister.namespaces)))
        return broadest.with_type(_type_of(kind))

    # Reads

    @overload
    async def get(self, kind: type[T], name: str | Key, *, namespace: str = "") -> T | None: ...
    @overload
    async def get(self, kind: Kind, name: str | Key, *, namespace: str = "") -> Unstructured | None: ...
    async def get(self, kind: type[Any] | Kind, name: str | Key, *, namespace: str = "") -> Any:
        """Read one object, from memory if its kind is cached, else from the server; None when it does not exist.

        Raises: NotSynced when the kind is cached and its first list is not complete.
        """
        key = name if isinstance(name, Key) else Key(namespace, name)
        lister = self.complete_lister(kind_of(kind), key.namespace)
        if lister is not None:
            return lister.with_type(_type_of(kind)).get(key)
        try:
            return await self._server_reader(kind).get(kind, key)
        except NotFound:
            return None

    @overload
    async def list(self, kind: type[T], *, namespace: str = "", labels: str = "") -> Objects[T]: ...
    @overload
    async def list(self, kind: Kind, *, namespace: str = "", labels: str = "") -> Objects[Unstructured]: ...
    async def list(self, kind: type[Any] | Kind, *, namespace: str = "", labels: str = "") -> Objects[Any]:
        """Read the objects of a namespace, or of all, that match a selector, from memory or from the server."""
        lister = self.complete_lister(kind_of(kind), namespace)
        if lister is not None:
            return lister.with_type(_type_of(kind)).list(namespace=namespace, labels=labels)
        return list(await self._server_reader(kind).list(kind, namespace=namespace, labels=labels))

    def entry(self, kind: Kind, key: Key) -> Entry | None:
        """Return the entry of an object; None when it does not exist, or when its kind is not cached completely."""
        lister = self.complete_lister(kind, key.namespace)
        return None if lister is None else lister.entry(key)

    def complete_lister(self, kind: Kind, namespace: str = "") -> Lister[Any] | None:
        """Return a lister that has every object of a kind and namespace, unchanged; None when there is none."""
        for lister in self._complete.get(kind, ()):
            if lister.has_namespace(namespace):
                return lister
        return None

    # Own writes

    def record_write(
        self,
        kind: Kind,
        raw: bytes,
        *,
        document: Unstructured | None = None,
        created: bool = False,
        base_version: str = "",
        writer: Any = None,
    ) -> None:
        """Record the response of a write; every later read sees it. Not for dry runs.

        `document` is the decoded response, so that it is not parsed again.
        `created` is True for a create; `base_version` is the version that the write carried. The event of the write has
        this `writer` if nobody else took part in the change.
        """
        for informer in self._informers_of(kind):
            informer.store.record_write(
                raw, document=document, created=created, base_version=base_version, writer=writer
            )

    def record_delete(self, kind: Kind, key: Key, raw: bytes, *, version: str = "", writer: Any = None) -> None:
        """Record the response of a delete; every later read sees it. `version` is one that the object had, if known."""
        for informer in self._informers_of(kind):
            informer.store.record_delete(key, raw, version=version, writer=writer)

    def record_live_version(self, kind: Kind, key: Key, version: str) -> None:
        """Record the version of an object that was read from the server: a cache that never gets there is behind."""
        for informer in self._informers_of(kind):
            informer.record_live_version(key, version)

    # Sync and stats

    async def wait_for_sync(self, timeout: float) -> None:
        """Wait until the first list of every declared kind is complete.

        Raises: NotSynced after `timeout` seconds, with the reason for each kind that is not synced.
        """
        try:
            async with asyncio.timeout(timeout):
                while waiting := [informer for informer in self._informers.values() if not informer.synced.is_set()]:
                    await waiting[0].synced.wait()
        except TimeoutError:
            reasons = _reasons(informer.stats() for informer in self._informers.values())
            texts = (f"{name} cache not synced after {timeout:g} s: {why}" for name, why in reasons.items())
            raise NotSynced("; ".join(texts), reasons=reasons) from None

    def stats(self) -> CacheStats:
        """Return the stats of every informer."""
        return CacheStats(tuple(informer.stats() for informer in self._informers.values()))

    # Shared informers: the InformerPool protocol

    def acquire(self, kind: Kind, namespace: str, options: CacheOptions) -> Informer:
        """Return the informer of a collection; create and start it if there is none."""
        selection = replace(options, namespaces=None, indexes=None)
        informer = self._informers.get((kind, namespace, selection))
        if informer is None:
            informer = Informer(
                kind,
                namespace,
                selection,
                source_factory=self._source_factory,
                reflector_options=self._reflector_options,
                stagger=self._stagger,
                changes=self.changes,
            )
            self._informers[kind, namespace, selection] = informer
            self._start(informer)
        informer.reference_count += 1
        return informer

    def release(self, informer: Informer) -> None:
        """Release an informer; it stops when no lister uses it any more."""
        informer.reference_count -= 1
        if not informer.reference_count:
            del self._informers[informer.kind, informer.namespace, informer.options]
            informer.synced.set()  # so that nothing waits for it any longer
            task = self._tasks.pop(informer, None)
            if task is not None:
                task.cancel()
            self.changes.notify()

    def _start(self, informer: Informer) -> None:
        if self._group is not None:
            name = f"informer {informer.kind.kind} {informer.namespace}".strip()
            self._tasks[informer] = self._group.create_task(informer.run(), name=name)

    def _informers_of(self, kind: Kind) -> Objects[Informer]:
        return [informer for informer in self._informers.values() if informer.kind == kind]

    def _server_reader(self, kind: type[Any] | Kind) -> ServerReader:
        known = kind_of(kind)
        if self._server is None:
            raise ValueError(f"{known.kind} is not declared, and this cache has no server to read from: declare it")
        if known not in self._uncached:
            self._uncached.add(known)
            _log.info("kind is not cached: reading from the server", extra={"kind": str(known)})
        return self._server


def _type_of(kind: type[Any] | Kind) -> type[Any]:
    return Unstructured if isinstance(kind, Kind) else kind


def _is_complete(options: CacheOptions) -> bool:
    return not (options.labels or options.fields or options.metadata_only or options.transform)


def _reasons(informers: Iterable[InformerStats]) -> dict[str, str]:
    """Return why each kind is not synced; if several namespaces are not, the reason of the first."""
    not_synced: dict[str, list[str]] = {}
    for informer in informers:
        if informer.not_synced_reason:
            not_synced.setdefault(informer.kind.kind, []).append(informer.not_synced_reason)
    return {
        kind: first if not more else f"{first}, and {len(more)} more namespaces"
        for kind, (first, *more) in not_synced.items()
    }
