"""Listers: read one kind from memory, in the namespaces that were requested."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from konverge.cache.entries import Entry
from konverge.cache.events import EventHandler, Subscription
from konverge.cache.indexes import IndexFunc, by_path
from konverge.cache.informers import Informer
from konverge.cache.options import CacheOptions
from konverge.cache.streams import EventStream
from konverge.errors import DecodeError, NotSynced
from konverge.objects import Key, Kind, LabelSelector

__all__ = ["InformerPool", "Lister"]

_log = logging.getLogger("konverge.cache")

T = TypeVar("T")
U = TypeVar("U")

Objects: TypeAlias = list[T]


class InformerPool(Protocol):
    """Shares informers between listers."""

    def acquire(self, kind: Kind, namespace: str, options: CacheOptions) -> Informer:
        """Return the informer of a collection; create and start it if there is none."""
        ...

    def release(self, informer: Informer) -> None:
        """Release an informer; it stops when no lister uses it any more."""
        ...


class Lister(Generic[T]):
    """The objects of one kind, read from memory.

    Promises: every returned object is a new copy; every read sees all own writes that have returned; no read sends a
    request to the server. A read raises NotSynced until the first list of each namespace that it reads is complete.
    """

    def __init__(self, kind: Kind, type_: type[T], options: CacheOptions, *, pool: InformerPool) -> None:
        self.kind = kind
        self.type = type_
        self.options = options
        self._pool = pool
        self._indexes: dict[str, IndexFunc] = dict(options.indexes or ())
        self._subscriptions: dict[EventHandler, dict[str, Subscription]] = {}
        self._informers: dict[str, Informer] = {}
        self._logged_failures: set[tuple[Key, object]] = set()
        self.set_namespaces(options.namespaces or ("",))

    # Reads

    def get(self, name: str | Key, *, namespace: str = "") -> T | None:
        """Return one object; None when it does not exist.

        Raises: DecodeError when it does not match the type.
        """
        entry = self.entry(name if isinstance(name, Key) else Key(namespace, name))
        return None if entry is None else self._read(entry)

    def list(self, *, namespace: str = "", labels: str | LabelSelector = "") -> Objects[T]:
        """Return the objects of one namespace, or of all cached ones, that match a label selector.

        An object that does not match the type is omitted and logged.
        """
        return self._read_all(self.entries(namespace=namespace, labels=labels))

    def find(self, index: str, value: Hashable, *, namespace: str = "") -> Objects[T]:
        """Return the objects that have a value in an index."""
        return self._read_all(self.find_entries(index, value, namespace=namespace))

    def owned_by(self, uid: str, *, namespace: str = "") -> Objects[T]:
        """Return the objects with an owner reference to this uid, in one namespace or in all."""
        found = (entry for informer in self._synced_informers("") for entry in informer.store.owned_by(uid))
        return self._read_all(entry for entry in found if namespace in ("", entry.key.namespace))

    def entry(self, key: Key) -> Entry | None:
        """Return the entry of a key: version, uid, labels and owners without the cost of decoding."""
        informer = self._informers.get("") or self._informer(key.namespace)
        self._check(informer)
        return informer.store.get(key)

    def entries(self, *, namespace: str = "", labels: str | LabelSelector = "") -> Objects[Entry]:
        """Return entries as `list` returns objects."""
        selector = LabelSelector.parse(labels) if isinstance(labels, str) else labels
        stores = [informer.store for informer in self._synced_informers(namespace)]
        return [entry for store in stores for entry in store.list(namespace=namespace, labels=selector)]

    def find_entries(self, index: str, value: Hashable, *, namespace: str = "") -> Objects[Entry]:
        """Return entries as `find` returns objects."""
        stores = [informer.store for informer in self._synced_informers(namespace)]
        return [entry for store in stores for entry in store.find(index, value, namespace=namespace)]

    def with_type(self, type_: type[U]) -> Lister[U]:
        """Return the same lister, decoding objects into another type."""
        if type_ is self.type:
            return self  # type: ignore[return-value]
        other = copy.copy(self)
        other.type = type_  # type: ignore[assignment]
        return other  # type: ignore[return-value]

    # Events

    async def subscribe(self, handler: EventHandler) -> Callable[[], None]:
        """Call a handler with every event from now on, existing objects first; return a function that stops it.

        Returns when the existing objects have been reported, in batches. The handler is called in the same step as each
        change; it must not block.
        """
        if handler in self._subscriptions:
            raise ValueError("this handler is already subscribed: subscribe another one, or end the first subscription")
        subscriptions = {
            namespace: informer.store.subscribe(handler) for namespace, informer in self._informers.items()
        }
        self._subscriptions[handler] = subscriptions
        for informer in tuple(self._informers.values()):
            while informer.store.notify_pending():  # noqa: ASYNC110 - lets other tasks run; not a poll
                await asyncio.sleep(0)
        return lambda: self._unsubscribe(handler)

    def events(self) -> EventStream:
        """Return a stream of events, existing objects first, for readers that may be slow.

        Close it (`contextlib.aclosing`), or it continues to collect events.
        """
        stream = EventStream()
        handler: EventHandler = stream.notify
        self._subscriptions[handler] = {}
        for namespace, informer in self._informers.items():
            self._subscriptions[handler][namespace] = informer.store.subscribe(handler, at_once=True)
        stream.on_close(lambda: self._unsubscribe(handler))
        return stream

    # Configuration

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The cached namespaces; ("",) for all."""
        return tuple(self._informers)

    def has_namespace(self, namespace: str) -> bool:
        """Report whether a namespace is cached; "" is all of them."""
        return "" in self._informers or (namespace != "" and namespace in self._informers)

    def set_namespaces(self, namespaces: Iterable[str]) -> None:
        """Cache exactly these namespaces from now on, ("",) for all.

        Objects of a dropped namespace are reported as deleted; those of a new one are reported when they arrive.
        """
        desired = dict.fromkeys(namespaces)
        if "" in desired and len(desired) > 1:
            raise ValueError("the empty namespace means all of them: pass it alone, or omit it")
        if not self.kind.namespaced and list(desired) not in ([""], []):
            raise ValueError(f"{self.kind.kind} is cluster-scoped: it cannot be cached by namespace")
        for namespace in [name for name in self._informers if name not in desired]:
            self._remove_namespace(namespace)
        for namespace in [name for name in desired if name not in self._informers]:
            self._add_namespace(namespace)

    def add_index(self, name: str, index_func: IndexFunc | str) -> None:
        """Add an index, by a wire path such as ".spec.nodeName" or with `by_function`, at any time."""
        function = by_path(index_func) if isinstance(index_func, str) else index_func
        for informer in self._informers.values():
            informer.store.add_index(name, function)
        self._indexes[name] = function

    def close(self) -> None:
        """Release the informers; no deletions are reported to handlers."""
        for handler in list(self._subscriptions):
            self._unsubscribe(handler)
        for namespace in list(self._informers):
            self._pool.release(self._informers.pop(namespace))

    @property
    def synced(self) -> bool:
        """Whether the first list of every cached namespace is complete."""
        return all(informer.synced.is_set() for informer in self._informers.values())

    @property
    def informers(self) -> tuple[Informer, ...]:
        """The informers of this lister, one for each namespace."""
        return tuple(self._informers.values())

    def _add_namespace(self, namespace: str) -> None:
        informer = self._pool.acquire(self.kind, namespace, self.options)
        for name, index_func in self._indexes.items():
            informer.store.add_index(name, index_func)
        self._informers[namespace] = informer
        for handler, subscriptions in self._subscriptions.items():
            subscriptions[namespace] = informer.store.subscribe(handler, at_once=True)

    def _remove_namespace(self, namespace: str) -> None:
        informer = self._informers.pop(namespace)
        for subscriptions in self._subscriptions.values():
            subscriptions.pop(namespace).close_as_deleted(informer.store.delivered())
        self._pool.release(informer)

    def _unsubscribe(self, handler: EventHandler) -> None:
        for subscription in self._subscriptions.pop(handler, {}).values():
            subscription.close()

    def _synced_informers(self, namespace: str) -> Iterator[Informer]:
        one = namespace and "" not in self._informers
        for informer in [self._informer(namespace)] if one else list(self._informers.values()):
            self._check(informer)
            yield informer

    def _informer(self, namespace: str) -> Informer:
        informer = self._informers.get(namespace)
        if informer is None:
            cached = ", ".join(self._informers) or "none"
            raise ValueError(f"{self.kind.kind} is not cached in namespace {namespace!r} (cached: {cached})")
        return informer

    def _check(self, informer: Informer) -> None:
        if not informer.store.version:
            reason = informer.not_synced_reason()
            raise NotSynced(f"{self.kind.kind} cache not synced: {reason}", reasons={str(self.kind): reason})

    def _read(self, entry: Entry) -> T:
        try:
            return entry.read(self.type)
        except DecodeError as error:
            raise DecodeError(f"read {self.kind.kind} {entry.key}: {error}", path=error.path) from error

    def _read_all(self, entries: Iterable[Entry]) -> Objects[T]:
        found = []
        for entry in entries:
            try:
                found.append(self._read(entry))
            except DecodeError as error:
                self._log_decode_failure(entry, error)
        return found

    def _log_decode_failure(self, entry: Entry, error: Any) -> None:
        if (entry.key, entry.version) not in self._logged_failures:
            if len(self._logged_failures) >= 1000:
                self._logged_failures.clear()
            self._logged_failures.add((entry.key, entry.version))
            facts = {"kind": str(self.kind), "key": str(entry.key), "error": str(error)}
            _log.warning("undecodable object omitted from lists", extra=facts)
