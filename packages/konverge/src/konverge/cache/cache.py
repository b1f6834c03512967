"""The cache: what a process keeps of a cluster, each collection once, for all who read it.

Rules that hold here:

1. A kind is kept only if somebody declared it. A read of another one asks the server, and the log says so, once.
2. Collections are shared: one kind, namespace and selection is followed once, however many views look at it.
3. Options of a declaration come before those for the kind, which come before those for the cache.
4. Own writes are told to every collection of their kind before the writer goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar, overload

from konverge.cache.backoff import Patience, Spacing
from konverge.cache.entries import Entry
from konverge.cache.informers import Informer, InformerStats, SourceOf
from konverge.cache.listers import View
from konverge.cache.options import CacheOptions
from konverge.errors import NotFound, NotSynced
from konverge.objects import Key, Kind, Resource, Unstructured, kind_of

__all__ = ["Cache", "CacheStats", "ServerReader"]

_log = logging.getLogger("konverge.cache")

T = TypeVar("T", bound=Resource)

V = TypeVar("V")

Objects: TypeAlias = list[V]


class ServerReader(Protocol):
    """Reads from the server what is not kept; a client is one."""

    async def get(self, kind: Any, name: str | Key, *, namespace: str | None = None) -> Any:
        """Read one object.

        Raises: NotFound when it is not there.
        """
        ...

    async def list(self, kind: Any, *, namespace: str = "", labels: str = "") -> Any:
        """Read a collection."""
        ...


@dataclass(frozen=True, slots=True)
class CacheStats:
    """A cache in numbers: each collection that is followed."""

    mirrors: tuple[InformerStats, ...]

    @property
    def objects(self) -> int:
        """How many objects are kept."""
        return sum(mirror.store.objects for mirror in self.mirrors)

    @property
    def bytes(self) -> int:
        """How many bytes of JSON are kept, as they are held."""
        return sum(mirror.store.bytes for mirror in self.mirrors)

    @property
    def unsynced(self) -> dict[str, str]:
        """Why which kind is not synced, by kind."""
        return _reasons(self.mirrors)


class Cache:
    """Collections of a cluster, followed while this is open: `async with Cache(...) as cache`.

    Declare what is to be kept before or after it is opened. `by_kind` sets options for kinds whoever declares them.
    """

    def __init__(
        self,
        source_of: SourceOf,
        *,
        server: ServerReader | None = None,
        options: CacheOptions | None = None,
        by_kind: Mapping[Kind, CacheOptions] | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._source_of = source_of
        self._server = server
        self._options = options or CacheOptions()
        self._by_kind = dict(by_kind or {})
        self._patience = patience
        self._spacing = Spacing()
        self._mirrors: dict[tuple[Kind, str, CacheOptions], Informer] = {}
        self._tasks: dict[Informer, asyncio.Task[None]] = {}
        self._views: list[View[Any]] = []
        self._group: asyncio.TaskGroup | None = None
        self._not_kept: set[Kind] = set()

    async def __aenter__(self) -> Self:
        self._group = await asyncio.TaskGroup().__aenter__()
        for mirror in self._mirrors.values():
            self._start(mirror)
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

    # Declaring

    @overload
    def declare(self, kind: type[T], options: CacheOptions | None = None) -> View[T]: ...
    @overload
    def declare(self, kind: Kind, options: CacheOptions | None = None) -> View[Unstructured]: ...
    def declare(self, kind: type[Any] | Kind, options: CacheOptions | None = None) -> View[Any]:
        """Keep a kind, and give the view of it; what others declared alike is shared."""
        known = kind_of(kind)
        below = self._by_kind.get(known, CacheOptions()).over(self._options)
        view: View[Any] = View(known, _type_of(kind), (options or CacheOptions()).over(below), pool=self)
        self._views.append(view)
        return view

    def withdraw(self, view: View[Any]) -> None:
        """Take a declaration back; what nobody else looks at is no longer followed."""
        if view in self._views:
            self._views.remove(view)
            view.close()

    @overload
    def view(self, kind: type[T]) -> View[T]: ...
    @overload
    def view(self, kind: Kind) -> View[Unstructured]: ...
    def view(self, kind: type[Any] | Kind) -> View[Any]:
        """Give a view of a kind that somebody declared, of as many namespaces as there is one for.

        Raises: ValueError when nobody declared the kind as a whole, or only with selectors.
        """
        known = kind_of(kind)
        found = [view for view in self._views if view.kind == known and _is_whole(view.options)]
        if not found:
            raise ValueError(f"{known.kind} is not kept: declare it, by .owns(...) or .watches(...) of the controller")
        widest = max(found, key=lambda view: ("" in view.namespaces, len(view.namespaces)))
        return widest.reading(_type_of(kind))

    # Reading

    @overload
    async def get(self, kind: type[T], name: str | Key, *, namespace: str = "") -> T | None: ...
    @overload
    async def get(self, kind: Kind, name: str | Key, *, namespace: str = "") -> Unstructured | None: ...
    async def get(self, kind: type[Any] | Kind, name: str | Key, *, namespace: str = "") -> Any:
        """Read one object, from memory if its kind is kept, else from the server; None when it is not there.

        Raises: NotSynced when the kind is kept and its first list is not complete.
        """
        key = name if isinstance(name, Key) else Key(namespace, name)
        view = self.whole_view(kind_of(kind), key.namespace)
        if view is not None:
            return view.reading(_type_of(kind)).get(key)
        try:
            return await self._ask(kind).get(kind, key)
        except NotFound:
            return None

    @overload
    async def list(self, kind: type[T], *, namespace: str = "", labels: str = "") -> Objects[T]: ...
    @overload
    async def list(self, kind: Kind, *, namespace: str = "", labels: str = "") -> Objects[Unstructured]: ...
    async def list(self, kind: type[Any] | Kind, *, namespace: str = "", labels: str = "") -> Objects[Any]:
        """Read the objects of a namespace, or of all, that a selector picks, from memory or from the server."""
        view = self.whole_view(kind_of(kind), namespace)
        if view is not None:
            return view.reading(_type_of(kind)).list(namespace=namespace, labels=labels)
        return list(await self._ask(kind).list(kind, namespace=namespace, labels=labels))

    def entry(self, kind: Kind, key: Key) -> Entry | None:
        """Give the entry of an object as readers see it; None when it is not there, or its kind not kept whole."""
        view = self.whole_view(kind, key.namespace)
        return None if view is None else view.entry(key)

    def whole_view(self, kind: Kind, namespace: str = "") -> View[Any] | None:
        """Find a view that shows everything of a kind and namespace, as it is; None when there is none."""
        for view in self._views:
            covers = "" in view.namespaces or (namespace and namespace in view.namespaces)
            if view.kind == kind and covers and _is_whole(view.options):
                return view
        return None

    # Own writes

    def note_write(
        self, kind: Kind, raw: bytes, *, created: bool = False, base_version: str = "", writer: Any = None
    ) -> None:
        """Take the response of a write: from now on every read sees it. Not for dry runs.

        `created` and `base_version` say what the write was: a create, or one that carried this version. `writer` is
        handed on with the event, if the write turns out to be the whole of it.
        """
        for mirror in self._of(kind):
            mirror.store.note_write(raw, created=created, base_version=base_version, writer=writer)

    def note_delete(self, kind: Kind, key: Key, raw: bytes, *, version: str = "", writer: Any = None) -> None:
        """Take the response of a delete: from now on every read sees it. `version` is one that it had, if known."""
        for mirror in self._of(kind):
            mirror.store.note_delete(key, raw, version=version, writer=writer)

    # Waiting and watching over it

    async def wait_for_sync(self, timeout: float) -> None:
        """Wait until the first list of everything declared is complete.

        Raises: NotSynced after so many seconds, with the reason of each kind that is not.
        """
        try:
            async with asyncio.timeout(timeout):
                while waiting := [mirror for mirror in self._mirrors.values() if not mirror.synced.is_set()]:
                    await waiting[0].synced.wait()
        except TimeoutError:
            reasons = _reasons(mirror.stats() for mirror in self._mirrors.values())
            words = (f"{name} cache not synced after {timeout:g} s: {why}" for name, why in reasons.items())
            raise NotSynced("; ".join(words), reasons=reasons) from None

    def stats(self) -> CacheStats:
        """Give the cache in numbers."""
        return CacheStats(tuple(mirror.stats() for mirror in self._mirrors.values()))

    # Sharing

    def acquire(self, kind: Kind, namespace: str, options: CacheOptions) -> Informer:
        """Give the mirror of a collection, made and started when there is none."""
        selection = replace(options, namespaces=None, indexes=None)
        mirror = self._mirrors.get((kind, namespace, selection))
        if mirror is None:
            mirror = Informer(
                kind,
                namespace,
                selection,
                source_of=self._source_of,
                patience=self._patience,
                spacing=self._spacing,
            )
            self._mirrors[kind, namespace, selection] = mirror
            self._start(mirror)
        mirror.readers += 1
        return mirror

    def release(self, mirror: Informer) -> None:
        """Give a mirror back; the last one ends it."""
        mirror.readers -= 1
        if not mirror.readers:
            del self._mirrors[mirror.kind, mirror.namespace, mirror.options]
            mirror.synced.set()  # nobody shall wait for it any more
            task = self._tasks.pop(mirror, None)
            if task is not None:
                task.cancel()

    def _start(self, mirror: Informer) -> None:
        if self._group is not None:
            name = f"mirror {mirror.kind.kind} {mirror.namespace}".strip()
            self._tasks[mirror] = self._group.create_task(mirror.run(), name=name)

    def _of(self, kind: Kind) -> Objects[Informer]:
        return [mirror for mirror in self._mirrors.values() if mirror.kind == kind]

    def _ask(self, kind: type[Any] | Kind) -> ServerReader:
        known = kind_of(kind)
        if self._server is None:
            raise ValueError(f"{known.kind} is not declared, and this cache has no server to ask: declare it")
        if known not in self._not_kept:
            self._not_kept.add(known)
            _log.info("Reads of a kind that is not kept go to the server", extra={"kind": str(known)})
        return self._server


def _type_of(kind: type[Any] | Kind) -> type[Any]:
    return Unstructured if isinstance(kind, Kind) else kind


def _is_whole(options: CacheOptions) -> bool:
    return not (options.labels or options.fields or options.metadata_only or options.transform)


def _reasons(mirrors: Iterable[InformerStats]) -> dict[str, str]:
    """Say of each kind why it is not synced; of many namespaces, the reason of the first."""
    unsynced: dict[str, list[str]] = {}
    for mirror in mirrors:
        if mirror.waits_for:
            unsynced.setdefault(mirror.kind.kind, []).append(mirror.waits_for)
    return {
        kind: first if not more else f"{first}, and {len(more)} more namespaces"
        for kind, (first, *more) in unsynced.items()
    }
