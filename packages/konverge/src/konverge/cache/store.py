"""The store: one collection as this process knows it, in two layers.

*Delivered* is what lists and watches returned, in order. The *overlay* has the responses of own writes (writes of this
process) that are not delivered yet. Readers see both as one; events are about delivered states only. Rules that every
change to this file keeps:

Versions
 1. resourceVersions of one resource are increasing numbers. The *high-water mark* is the highest version delivered, by
    a change, a list or a bookmark: everything up to it is known. It never decreases.
 2. Stale states are ignored: a state is accepted only if it is newer than the one delivered for its key or, if there is
    none, newer than the removal of its key and than the last list and bookmark (an older one belongs to an object that
    was deleted since). A removal is accepted unless a newer state is delivered. A list older than the high-water mark
    is rejected with `Expired`, so that it is requested again, however often it is repeated. Only `restart_history` lets
    the next list start anew: see `konverge.cache.history`.
 3. For each key a reader sees the pending write, if there is one, else what is delivered. A reader never sees an object
    that this process deleted.
 4. If a version is not a number, versions compare only for equality, and there is no overlay.

Overlay
 5. The response of a write is stored if it is newer than the high-water mark and than the pending write of its key. It
    is dropped when the high-water mark reaches it. An older list does not remove it. A response outside of the store's
    scope or selector is stored as an absent object, at its version. It goes through the same transform as delivered
    states.
 6. An own delete is stored as a tombstone by uid: readers no longer see that uid. The tombstone is dropped when the
    removal is delivered: by the watch, by another object of the same name, or by a list without the object that is not
    older than a version it had (if none is known, by any list without it). The response of a delete that contains the
    object counts as a delete if the object has nothing left to wait for (finalizers, a grace period). The same holds
    for the response of any other write that contains a deletionTimestamp.

Events
 7. Every change of a delivered state is reported as an event, from the state delivered before to the one delivered now,
    before anything else happens. The store and its indexes already show it. A uid that replaces another is two events.
 8. An event has a writer if its version is purely own: the response of a create, or of a write that carried a base
    version and returned another one. A removal has the writer that deleted that uid.
 9. After a list, no event has a writer for an earlier write: the list may hide changes of others.
10. A list replaces what is delivered at one moment and is reported afterwards in batches. For one object, changes found
    by the list are always reported before changes from the watch.
11. An object that is known only from an own write, and that is gone when a list ends (or when the response arrives,
    after a list), is reported as deleted. Otherwise its creator would never be notified that it is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from heapq import nlargest
from typing import Any, TypeAlias

from msgspec import Struct

from konverge.cache.compression import Compressor
from konverge.cache.decoder import Decoder
from konverge.cache.deletions import parse_delete_response, was_deleted
from konverge.cache.entries import Entry, parse_version
from konverge.cache.events import EventHandler, Subscription
from konverge.cache.indexes import IndexFunc
from konverge.cache.layers import Change, Layers
from konverge.cache.options import CacheOptions
from konverge.cache.scopes import Scope
from konverge.objects import Key, Kind, LabelSelector, Unstructured

__all__ = ["Store", "StoreStats"]

_BATCH_SIZE = 500

Entries: TypeAlias = list[Entry]


class StoreStats(Struct, frozen=True):
    """The size of a store: delivered objects and their stored bytes, pending own writes, high-water mark, indexes."""

    objects: int
    bytes: int
    pending: int
    version: str
    indexes: tuple[str, ...]


class Store:
    """One collection: written by one reflector and by the responses of own writes, read by all.

    Every method except `swap` is synchronous: nothing else can run between a change and its event handlers. Other
    threads may read; they never see a partially written object.
    """

    def __init__(self, kind: Kind, *, namespace: str = "", options: CacheOptions | None = None) -> None:
        options = options or CacheOptions()
        self.kind = kind
        self._scope = Scope(namespace, options.labels or "", options.fields or "")
        self._compressor = Compressor() if options.compress else None
        self._all_compressed = False  # whether all delivered entries are compressed
        self._decoder = Decoder(
            kind,
            manager=options.manager or "",
            ordered=options.ordered is not False,
            metadata_only=bool(options.metadata_only),
            transform=options.transform,
            compressor=self._compressor,
        )
        self._layers = Layers(kind, ordered=options.ordered is not False)
        self._subscriptions: list[Subscription] = []
        for name, index_func in options.indexes or ():
            self.add_index(name, index_func)

    # Writes of the reflector: the Sink protocol

    def begin(self) -> None:
        """Start a list: stage all changes until `swap`."""
        self._layers.begin()

    def put(self, raw: bytes) -> str:
        """Store the state of an object, new or changed; return its version.

        Raises: DecodeError when its name or version is missing or unreadable; then nothing has changed.
        """
        layers = self._layers
        if layers.list_started:
            entry = self._decoder.decode(raw, layers.known_entry)
            layers.stage(entry.key, entry)
        else:
            entry = self._decoder.decode(raw, layers.seen_entry)
            self._notify(layers.put(entry))
        return str(entry.version)

    def remove(self, raw: bytes) -> str:
        """Remove an object, given its last state; return its version.

        Raises: as `put`.
        """
        entry = self._decoder.decode(raw)
        if self._layers.list_started:
            self._layers.stage(entry.key, None)
        else:
            self._notify(self._layers.remove(entry))
        return str(entry.version)

    async def swap(self, resource_version: str) -> None:
        """End the list: deliver what is staged, in one step; return when all subscribers are notified.

        Raises: Expired when the list is older than what is delivered; then nothing has changed, list again.
        """
        deleted = self._layers.deletions_to_report(resource_version)
        for change in self._layers.swap(resource_version):
            for subscription in self._subscriptions:
                subscription.add_pending(change.key, change.old, change.new)
        for entry in deleted:
            self._notify_deleted(entry)
        self._compress_all()
        while self.notify_pending():  # noqa: ASYNC110 - lets other tasks run; not a poll
            await asyncio.sleep(0)

    def progress(self, resource_version: str) -> None:
        """Record that everything up to this version has been delivered."""
        number = parse_version(resource_version)
        self._layers.complete(resource_version if number is None else number)

    def restart_history(self) -> None:
        """Accept the next list even if it is older: the server's history restarted. Own writes are forgotten."""
        self._layers.restart_history()

    def newest(self, count: int) -> list[tuple[Key, int]]:
        """Return the delivered objects with the highest versions, and these versions."""
        numbered = [(entry.key, entry.version) for entry in self.delivered() if isinstance(entry.version, int)]
        return nlargest(count, numbered, key=lambda each: each[1])

    # Own writes

    def record_write(
        self,
        raw: bytes,
        *,
        document: Unstructured | None = None,
        created: bool = False,
        base_version: str = "",
        writer: Any = None,
    ) -> None:
        """Record the response of a write; every later read sees it.

        `document` is the decoded response, if the caller has it; `created` is True for a create; `base_version` is the
        version that the write carried.
        """
        entry = self._decoder.decode(raw, document=document)
        key, version = entry.key, entry.version
        if not self._scope.contains(key):
            return
        if was_deleted(raw):
            self._layers.add_tombstone(key, entry.uid, parse_version(str(version)) or 0, writer)
        elif self._layers.is_pending(version):
            if created or (base_version and base_version != str(version)):
                self._layers.record_writer(version, writer)
            matches = self._scope.matches(entry.label_map(), raw)
            if matches is not None:
                self._layers.add_write(key, version, entry if matches else None)
        elif self._layers.must_report_deletion(entry) and self._scope.matches(entry.label_map(), raw):
            self._notify_deleted(entry)

    def record_delete(self, key: Key, raw: bytes, *, version: str = "", writer: Any = None) -> None:
        """Record the response of a delete: readers no longer see the object, unless it still waits for something.

        `version` is one that the object had, if the caller knows one.
        """
        deletion = parse_delete_response(raw)
        if deletion is None:
            self.record_write(raw, writer=writer)
        elif self._scope.contains(key):
            visible = self.get(key)
            uid = deletion.uid or ("" if visible is None else visible.uid)
            self._layers.add_tombstone(key, uid, max(parse_version(version) or 0, deletion.version), writer)

    # Reads

    def get(self, key: Key) -> Entry | None:
        """Return the object of a key, own writes included."""
        return self._layers.get(key)

    def list(self, *, namespace: str = "", labels: LabelSelector | None = None) -> Entries:
        """Return the objects of a namespace, or of all, that match a selector."""
        layers = self._layers
        if labels is None or not labels.requirements:
            return layers.list_visible(namespace)
        keys = layers.indexes.labels().candidates(labels)
        found = layers.list_visible(namespace) if keys is None else layers.get_many(keys, namespace)
        return [entry for entry in found if labels.matches(entry.label_map())]

    def find(self, index: str, value: Hashable, *, namespace: str = "") -> Entries:
        """Return the objects that have a value in an index.

        Raises: ValueError when there is no such index.
        """
        return self._layers.get_many(self._layers.indexes.get(index).find(value), namespace)

    def owned_by(self, uid: str) -> Entries:
        """Return the objects with an owner reference to this uid."""
        return self._layers.get_many(self._layers.indexes.owners().find(uid))

    def add_index(self, name: str, index_func: IndexFunc) -> None:
        """Add an index, at any time.

        Raises: ValueError when the name is taken by a different index.
        """
        self._layers.indexes.add(name, index_func)

    def delivered(self) -> Entries:
        """Return what is delivered, without own writes: the state that subscribers know."""
        return self._layers.list_delivered()

    @property
    def version(self) -> str:
        """The version up to which everything is delivered; "" before the first list."""
        return self._layers.version

    def stats(self) -> StoreStats:
        """Return the size of the store."""
        entries, layers = self.delivered(), self._layers
        size = sum(entry.size for entry in entries)
        return StoreStats(len(entries), size, layers.pending, layers.version, layers.indexes.names())

    # Subscribers

    def subscribe(self, handler: EventHandler, *, at_once: bool = False) -> Subscription:
        """Call a handler with every event from now on, existing objects first; close the subscription to stop.

        Existing objects are reported by `notify_pending`, in batches, or before this returns if `at_once`.
        """
        subscription = Subscription(handler, self._unsubscribe)
        entries = self.delivered()
        for entry in entries:
            subscription.add_pending(entry.key, None, entry)
        self._subscriptions.append(subscription)
        if at_once:
            subscription.notify_pending(len(entries))
        return subscription

    def notify_pending(self, count: int = _BATCH_SIZE) -> bool:
        """Report up to `count` pending changes to each subscriber; return whether more are left."""
        more = False
        for subscription in tuple(self._subscriptions):
            more = subscription.notify_pending(count) or more
        return more

    def _notify(self, change: Change | None) -> None:
        if change is not None:
            for subscription in tuple(self._subscriptions):
                subscription.notify(change.key, change.old, change.new, change.writer)

    def _notify_deleted(self, entry: Entry) -> None:
        for subscription in tuple(self._subscriptions):
            subscription.notify_deleted(entry)

    def _unsubscribe(self, subscription: Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    def _compress_all(self) -> None:
        """Compress the entries that were stored before there was a dictionary; these are few, and it happens once."""
        if not self._all_compressed and self._compressor is not None and self._compressor.build_dictionary():
            self._all_compressed = True
            self._layers.replace_entries(self._decoder.compress)
