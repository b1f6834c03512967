"""The store: one collection as this process knows it, in two layers.

*Delivered* is what lists and watches returned, in order. *Overlay* is what our own writes returned and delivered has
not reached yet. Readers see both as one; events are about delivered only. Rules that every change to this file keeps:

Versions
 1. resourceVersions of one resource are numbers in order. The *horizon* is the highest that was delivered, by a change,
    a list or a bookmark: everything up to it is known. It never goes back.
 2. Old news is no news: a state is taken only if it is newer than the one delivered for its key or, where none is, not
    older than the horizon (that object was deleted since). A removal is taken unless a newer state is delivered. A list
    older than the horizon is refused with `Expired`, so that it is asked for again; only when this happens again and
    again does the store believe that the server's history has started over.
 3. A reader sees, of each key, what ours holds, else what is delivered, and never an object that we deleted.
 4. Where a version is no number, versions compare for equality only, and there is no layer of ours.

Overlay
 5. The response of a write is kept if it is newer than the horizon and than what ours holds for the key, and goes when
    the horizon reaches it. A list older than it does not remove it. A response that is outside of the store's scope or
    selector is kept as absence, at its version. It passes the same transform as what is delivered.
 6. A delete of ours is kept by uid: that uid is not seen again. It goes when the removal is delivered, by the watch, by
    another object of the name, or by a list without it that is not older than a version it had (where none is known, by
    any list without it). The response of a delete that shows the object is a delete if that has nothing left to wait
    for (finalizers, a grace period); so is the response of any other write that shows it marked as well.

Who is told
 7. Every change of delivered is told as an event, from the state delivered before to the one delivered now, before
    anything else happens. The store and its indexes show it already. A uid that replaces another is two events.
 8. An event carries its writer if its version is purely ours: the response of a create, or of a write that carried a
    base version and came back with another one. A removal carries the writer that deleted that uid.
 9. After a list nothing carries a writer: what others did before may be hidden in what the list shows.
10. A list is swapped in at one moment and told afterwards in slices. Of one object, what a list brought is always told
    before what a watch brings.
11. An object that only our own write told of, and that is gone when a list ends (or when the answer comes, after a
    list), is told as removed: whoever made it would never hear that it is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

from konverge.cache.compression import Packer
from konverge.cache.decoder import Decoder
from konverge.cache.entries import Entry, number_of
from konverge.cache.events import Subscriber, Subscription
from konverge.cache.indexes import Values
from konverge.cache.layers import Change, Layers
from konverge.cache.options import CacheOptions
from konverge.cache.removals import is_leaving, read_removal
from konverge.cache.scopes import Scope
from konverge.objects import Key, Kind, LabelSelector

__all__ = ["Store", "StoreStats"]

_SLICE = 500

Entries: TypeAlias = list[Entry]


@dataclass(frozen=True, slots=True)
class StoreStats:
    """A store in numbers: objects delivered and their bytes as held, own writes pending, the horizon, indexes."""

    objects: int
    bytes: int
    pending: int
    version: str
    indexes: tuple[str, ...]


class Store:
    """One collection: written by one reflector and by responses of own writes, read by everybody.

    Every method but `swap` is synchronous: between a change and what subscribers do about it nothing else can run.
    Readers in other threads are welcome; a read there sees each object whole.
    """

    def __init__(self, kind: Kind, *, namespace: str = "", options: CacheOptions | None = None) -> None:
        options = options or CacheOptions()
        self.kind = kind
        self._scope = Scope(namespace, options.labels or "", options.fields or "")
        self._packer = Packer() if options.compress else None
        self._packed = False  # whether everything delivered is held compressed
        self._intake = Decoder(
            kind,
            manager=options.manager or "",
            ordered=options.ordered is not False,
            metadata_only=bool(options.metadata_only),
            transform=options.transform,
            packer=self._packer,
        )
        self._layers = Layers(kind, ordered=options.ordered is not False)
        self._subscriptions: list[Subscription] = []
        for name, values in options.indexes or ():
            self.add_index(name, values)

    # What the reflector tells

    def begin(self) -> None:
        """Start a list: what comes from now on is staged, until `swap`."""
        self._layers.begin()

    def put(self, raw: bytes) -> str:
        """Take the state of an object, new or changed, and give its version.

        Raises: DecodeError when it has no name or version that can be read; nothing has changed then.
        """
        layers = self._layers
        if layers.staging:
            entry = self._intake.take(raw, layers.delivered_at)
            layers.stage(entry.key, entry)
        else:
            entry = self._intake.take(raw)
            self._tell(layers.put(entry))
        return str(entry.version)

    def remove(self, raw: bytes) -> str:
        """Take the last state of an object that is gone, and give its version.

        Raises: as `put`.
        """
        entry = self._intake.take(raw)
        if self._layers.staging:
            self._layers.stage(entry.key, None)
        else:
            self._tell(self._layers.remove(entry))
        return str(entry.version)

    async def swap(self, resource_version: str) -> None:
        """End the list: what is staged is delivered, in one step; return when everybody has been told.

        Raises: Expired when the list is older than what is delivered: it changes nothing, list again.
        """
        missed = self._layers.missed(resource_version)
        for change in self._layers.swap(resource_version):
            for subscription in self._subscriptions:
                subscription.owe(change.key, change.old, change.new)
        for entry in missed:
            self._tell_missed(entry)
        self._pack()
        while self.tell_some():  # noqa: ASYNC110 - a turn for others, not a wait
            await asyncio.sleep(0)

    def progress(self, resource_version: str) -> None:
        """Note that everything up to this version has been delivered."""
        number = number_of(resource_version)
        self._layers.advance(resource_version if number is None else number)

    # What own writes tell

    def note_write(self, raw: bytes, *, created: bool = False, base_version: str = "", writer: Any = None) -> None:
        """Take the response of a write, so that every read sees it from now on.

        `created` and `base_version` say what the write was: a create, or one that carried this version.
        """
        entry = self._intake.take(raw)
        key, version = entry.key, entry.version
        if not self._scope.holds(key):
            return
        if is_leaving(raw):
            self._layers.bury(key, entry.uid, number_of(str(version)) or 0, writer)
        elif self._layers.is_ahead(version):
            if created or (base_version and base_version != str(version)):
                self._layers.sign(version, writer)
            selected = self._scope.selects(entry.label_map(), raw)
            if selected is not None:
                self._layers.write(key, version, entry if selected else None)
        elif self._layers.is_missed(entry) and self._scope.selects(entry.label_map(), raw):
            self._tell_missed(entry)

    def note_delete(self, key: Key, raw: bytes, *, version: str = "", writer: Any = None) -> None:
        """Take the response of a delete: what is gone by it is not seen again, what only waits to go is.

        `version` is one that the object had, when the caller knows one.
        """
        gone = read_removal(raw)
        if gone is None:
            self.note_write(raw, writer=writer)
        elif self._scope.holds(key):
            seen = self.get(key)
            uid = gone.uid or ("" if seen is None else seen.uid)
            self._layers.bury(key, uid, max(number_of(version) or 0, gone.version), writer)

    # What readers ask

    def get(self, key: Key) -> Entry | None:
        """Give the object of a key, as readers see it."""
        return self._layers.get(key)

    def list(self, *, namespace: str = "", labels: LabelSelector | None = None) -> Entries:
        """Give the objects of a namespace, or of all, that a selector picks."""
        layers = self._layers
        if labels is None or not labels.requirements:
            return layers.seen(namespace)
        keys = layers.indexes.labels().narrow(labels)
        found = layers.seen(namespace) if keys is None else layers.at(keys, namespace)
        return [entry for entry in found if labels.matches(entry.label_map())]

    def find(self, index: str, value: Hashable, *, namespace: str = "") -> Entries:
        """Give the objects that an index has under a value.

        Raises: ValueError when there is no such index.
        """
        return self._layers.at(self._layers.indexes.named(index).find(value), namespace)

    def owned_by(self, uid: str) -> Entries:
        """Give the objects that name this uid as an owner."""
        return self._layers.at(self._layers.indexes.owners().find(uid))

    def add_index(self, name: str, values: Values) -> None:
        """Declare an index, now or at any time later.

        Raises: ValueError when the name is taken by another one.
        """
        self._layers.indexes.add(name, values)

    def delivered(self) -> Entries:
        """Give what is delivered, without own writes: what subscribers know."""
        return self._layers.delivered()

    @property
    def version(self) -> str:
        """The version up to which everything is delivered; "" before the first list."""
        return self._layers.version

    def stats(self) -> StoreStats:
        """Give the store in numbers."""
        entries, layers = self.delivered(), self._layers
        size = sum(entry.size for entry in entries)
        return StoreStats(len(entries), size, layers.pending, layers.version, layers.indexes.names())

    # Who is told

    def subscribe(self, subscriber: Subscriber, *, at_once: bool = False) -> Subscription:
        """Tell a function every event from now on, what is there first; close the subscription to end that.

        What is there is told by `tell_some`, in slices, or `at_once`.
        """
        subscription = Subscription(subscriber, self._unsubscribe)
        entries = self.delivered()
        for entry in entries:
            subscription.owe(entry.key, None, entry)
        self._subscriptions.append(subscription)
        if at_once:
            subscription.tell_some(len(entries))
        return subscription

    def tell_some(self, count: int = _SLICE) -> bool:
        """Tell each subscriber so much of what it is owed; give whether there is more."""
        more = False
        for subscription in tuple(self._subscriptions):
            more = subscription.tell_some(count) or more
        return more

    def _tell(self, change: Change | None) -> None:
        if change is not None:
            for subscription in tuple(self._subscriptions):
                subscription.tell(change.key, change.old, change.new, change.writer)

    def _tell_missed(self, entry: Entry) -> None:
        for subscription in tuple(self._subscriptions):
            subscription.tell_missed(entry)

    def _unsubscribe(self, subscription: Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    def _pack(self) -> None:
        """Hold compressed what came before there was a dictionary; that is little, and happens once."""
        if not self._packed and self._packer is not None and self._packer.train():
            self._packed = True
            self._layers.rewrite(self._intake.pack)
