"""Views: one kind as a reader sees it, over the namespaces that it asked for."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from konverge.cache.entries import Entry
from konverge.cache.events import Subscriber, Subscription
from konverge.cache.indexes import Values, by_path
from konverge.cache.informers import Informer
from konverge.cache.options import CacheOptions
from konverge.cache.streams import EventStream
from konverge.errors import DecodeError, NotSynced
from konverge.objects import Key, Kind, LabelSelector

__all__ = ["InformerPool", "View"]

_log = logging.getLogger("konverge.cache")

T = TypeVar("T")
U = TypeVar("U")

Objects: TypeAlias = list[T]


class InformerPool(Protocol):
    """Where a view gets its mirrors from, and gives them back to."""

    def acquire(self, kind: Kind, namespace: str, options: CacheOptions) -> Informer:
        """Give the mirror of a collection, made and started when there is none."""
        ...

    def release(self, mirror: Informer) -> None:
        """Give a mirror back; the last one ends it."""
        ...


class View(Generic[T]):
    """The objects of one kind, read from memory.

    Promises: what is handed out is the caller's own; every read sees all own writes that have returned; nothing here
    asks the server. Every read raises NotSynced until the first list of each namespace that it is about is complete.
    """

    def __init__(self, kind: Kind, type_: type[T], options: CacheOptions, *, pool: InformerPool) -> None:
        self.kind = kind
        self.type = type_
        self.options = options
        self._pool = pool
        self._indexes: dict[str, Values] = dict(options.indexes or ())
        self._subscribers: dict[Subscriber, dict[str, Subscription]] = {}
        self._mirrors: dict[str, Informer] = {}
        self._complained: set[tuple[Key, object]] = set()
        self.follow(options.namespaces or ("",))

    # Reading

    def get(self, name: str | Key, *, namespace: str = "") -> T | None:
        """Read one object; None when it is not there.

        Raises: DecodeError when it does not fit the type.
        """
        entry = self.entry(name if isinstance(name, Key) else Key(namespace, name))
        return None if entry is None else self._read(entry)

    def list(self, *, namespace: str = "", labels: str | LabelSelector = "") -> Objects[T]:
        """Read the objects of one namespace, or of all that are followed, that a label selector picks.

        An object that does not fit the type is left out, and the log names it.
        """
        return self._read_all(self.entries(namespace=namespace, labels=labels))

    def find(self, index: str, value: Hashable, *, namespace: str = "") -> Objects[T]:
        """Read the objects that an index has under a value."""
        stores = [mirror.store for mirror in self._about(namespace)]
        return self._read_all(entry for store in stores for entry in store.find(index, value, namespace=namespace))

    def owned_by(self, uid: str, *, namespace: str = "") -> Objects[T]:
        """Read the objects that name this uid as an owner, of a namespace or of all."""
        found = (entry for mirror in self._about("") for entry in mirror.store.owned_by(uid))
        return self._read_all(entry for entry in found if namespace in ("", entry.key.namespace))

    def entry(self, key: Key) -> Entry | None:
        """Give the entry of a key: the facts without the price of decoding."""
        mirror = self._mirrors.get("") or self._mirror(key.namespace)
        self._check(mirror)
        return mirror.store.get(key)

    def entries(self, *, namespace: str = "", labels: str | LabelSelector = "") -> Objects[Entry]:
        """Give entries as `list` gives objects."""
        selector = LabelSelector.parse(labels) if isinstance(labels, str) else labels
        stores = [mirror.store for mirror in self._about(namespace)]
        return [entry for store in stores for entry in store.list(namespace=namespace, labels=selector)]

    def reading(self, type_: type[U]) -> View[U]:
        """Give the same view with objects of another type."""
        twin = copy.copy(self)
        twin.type = type_  # type: ignore[assignment]
        return twin  # type: ignore[return-value]

    # Being told

    async def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tell a function every event from now on, what is there first; give a function that ends it.

        Returns when what is there has been told, in slices. The function is called in one step with each change; it
        must not block.
        """
        if subscriber in self._subscribers:
            raise ValueError(
                "this function is subscribed already: subscribe another one, or end the first subscription"
            )
        endings = {namespace: mirror.store.subscribe(subscriber) for namespace, mirror in self._mirrors.items()}
        self._subscribers[subscriber] = endings
        for mirror in tuple(self._mirrors.values()):
            while mirror.store.tell_some():  # noqa: ASYNC110 - a turn for others, not a wait
                await asyncio.sleep(0)
        return lambda: self._unsubscribe(subscriber)

    def events(self) -> EventStream:
        """Give a stream of events, what is there first, for observers that may be slow.

        Close it (`contextlib.aclosing`), or it goes on collecting.
        """
        stream = EventStream()
        subscriber: Subscriber = stream.tell
        self._subscribers[subscriber] = {}
        for namespace, mirror in self._mirrors.items():
            self._subscribers[subscriber][namespace] = mirror.store.subscribe(subscriber, at_once=True)
        stream.closes_with(lambda: self._unsubscribe(subscriber))
        return stream

    # Changing what is followed

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces that are followed; ("",) for all."""
        return tuple(self._mirrors)

    def follow(self, namespaces: Iterable[str]) -> None:
        """Follow exactly these namespaces from now on, ("",) for all.

        Objects of a namespace that is left are told as removed; those of one that is new are told when they come.
        """
        wanted = dict.fromkeys(namespaces)
        if "" in wanted and len(wanted) > 1:
            raise ValueError("the empty namespace stands for all of them: give it alone, or leave it out")
        if not self.kind.namespaced and list(wanted) not in ([""], []):
            raise ValueError(f"{self.kind.kind} is cluster-scoped: it cannot be followed in namespaces")
        for namespace in [name for name in self._mirrors if name not in wanted]:
            self._leave(namespace)
        for namespace in [name for name in wanted if name not in self._mirrors]:
            self._join(namespace)

    def add_index(self, name: str, values: Values | str) -> None:
        """Declare an index, by a wire path such as ".spec.nodeName" or by `by_function`, now or at any time later."""
        by = by_path(values) if isinstance(values, str) else values
        for mirror in self._mirrors.values():
            mirror.store.add_index(name, by)
        self._indexes[name] = by

    def close(self) -> None:
        """Follow nothing any more; subscribers are told nothing of it."""
        for subscriber in list(self._subscribers):
            self._unsubscribe(subscriber)
        for namespace in list(self._mirrors):
            self._pool.release(self._mirrors.pop(namespace))

    @property
    def synced(self) -> bool:
        """Whether every namespace that is followed has had its first list."""
        return all(mirror.synced.is_set() for mirror in self._mirrors.values())

    @property
    def mirrors(self) -> tuple[Informer, ...]:
        """The mirrors behind this view, one for each namespace."""
        return tuple(self._mirrors.values())

    # How it is done

    def _join(self, namespace: str) -> None:
        mirror = self._pool.acquire(self.kind, namespace, self.options)
        for name, values in self._indexes.items():
            mirror.store.add_index(name, values)
        self._mirrors[namespace] = mirror
        for subscriber, subscriptions in self._subscribers.items():
            subscriptions[namespace] = mirror.store.subscribe(subscriber, at_once=True)

    def _leave(self, namespace: str) -> None:
        mirror = self._mirrors.pop(namespace)
        for subscriptions in self._subscribers.values():
            subscriptions.pop(namespace).take_leave(mirror.store.delivered())
        self._pool.release(mirror)

    def _unsubscribe(self, subscriber: Subscriber) -> None:
        for subscription in self._subscribers.pop(subscriber, {}).values():
            subscription.close()

    def _about(self, namespace: str) -> Iterator[Informer]:
        one = namespace and "" not in self._mirrors
        for mirror in [self._mirror(namespace)] if one else list(self._mirrors.values()):
            self._check(mirror)
            yield mirror

    def _mirror(self, namespace: str) -> Informer:
        mirror = self._mirrors.get(namespace)
        if mirror is None:
            followed = ", ".join(self._mirrors) or "none"
            raise ValueError(f"{self.kind.kind} is not followed in namespace {namespace!r} (followed: {followed})")
        return mirror

    def _check(self, mirror: Informer) -> None:
        if not mirror.store.version:
            reason = mirror.waits_for()
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
                self._complain(entry, error)
        return found

    def _complain(self, entry: Entry, error: Any) -> None:
        if (entry.key, entry.version) not in self._complained:
            if len(self._complained) >= 1000:
                self._complained.clear()
            self._complained.add((entry.key, entry.version))
            facts = {"kind": str(self.kind), "key": str(entry.key), "error": str(error)}
            _log.warning("An object does not fit its type and is left out of lists", extra=facts)
