"""The store: one collection as this process knows it, in two layers.

*Delivered* is what lists and watches told, in order. *Ours* is what responses of our own writes told and delivered has
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

Ours
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
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from konverge.cache.compression import Packer
from konverge.cache.entries import Entry, Version, number_of
from konverge.cache.events import Subscriber, Subscription
from konverge.cache.indexes import Indexes, Values
from konverge.cache.intake import Intake
from konverge.cache.options import CacheOptions
from konverge.cache.ours import Ours
from konverge.cache.removals import is_leaving, read_removal
from konverge.cache.scopes import Scope
from konverge.errors import Expired
from konverge.objects import Key, Kind, LabelSelector

__all__ = ["Store", "StoreStats"]

_log = logging.getLogger("konverge.cache")

_SLICE = 500
_REFUSALS = 5
"""So many lists in a row must be older than the horizon before the store believes that history has started over."""


Entries: TypeAlias = list[Entry]
Change: TypeAlias = tuple[Key, Entry | None, Entry | None]
Changes: TypeAlias = list[Change]


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
        self._ordered = options.ordered is not False
        self._intake = Intake(
            kind,
            manager=options.manager or "",
            ordered=self._ordered,
            metadata_only=bool(options.metadata_only),
            transform=options.transform,
            packer=self._packer,
        )
        self._delivered: dict[str, dict[str, Entry]] = {}
        self._staged: dict[str, dict[str, Entry]] | None = None
        self._ours = Ours()
        self._horizon = -1
        self._version = ""
        self._refused = 0
        self._indexes = Indexes(kind.kind, self._all)
        self._subscriptions: list[Subscription] = []
        for name, values in options.indexes or ():
            self.add_index(name, values)

    # What the reflector tells

    def begin(self) -> None:
        """Start a list: what comes from now on is staged, until `swap`."""
        self._staged = {}
        self._indexes.begin(first=not self._delivered)

    def put(self, raw: bytes) -> str:
        """Take the state of an object, new or changed, and give its version.

        Raises: DecodeError when it has no name or version that can be read; nothing has changed then.
        """
        if self._staged is not None:
            entry = self._intake.take(raw, self._delivered_at)
            self._stage(self._staged.setdefault(entry.key.namespace, {}), entry.key.name, entry)
            return str(entry.version)
        entry = self._intake.take(raw)
        if self._is_news(entry):
            self._deliver(entry.key, entry, entry.version, self._ours.writer_of(entry.version))
        return str(entry.version)

    def remove(self, raw: bytes) -> str:
        """Take the last state of an object that is gone, and give its version.

        Raises: as `put`.
        """
        entry = self._intake.take(raw)
        if self._staged is not None:
            self._stage(self._staged.setdefault(entry.key.namespace, {}), entry.key.name, None)
            return str(entry.version)
        old = self._delivered_at(entry.key)
        if old is not None and self._is_end_of(old, entry):
            writer = self._ours.deleter_of(old.uid) or self._ours.writer_of(entry.version)
            self._deliver(entry.key, None, entry.version, writer, last=entry if entry.uid == old.uid else old)
        else:
            self._advance(entry.version)
        return str(entry.version)

    async def swap(self, resource_version: str) -> None:
        """End the list: what is staged is delivered, in one step; return when everybody has been told.

        Raises: Expired when the list is older than what is delivered: it changes nothing, list again.
        """
        staged, self._staged = self._staged or {}, None
        self._check_age(resource_version)
        for key, old, new in self._replace(staged, resource_version):
            for subscription in self._subscriptions:
                subscription.owe(key, old, new)
        self._pack()
        while self.tell_some():  # noqa: ASYNC110 - a turn for others, not a wait
            await asyncio.sleep(0)

    def progress(self, resource_version: str) -> None:
        """Note that everything up to this version has been delivered."""
        self._advance(number_of(resource_version) if self._ordered else resource_version)

    # What own writes tell

    def note_write(self, raw: bytes, *, created: bool = False, base_version: str = "", writer: Any = None) -> None:
        """Take the response of a write, so that every read sees it from now on.

        `created` and `base_version` say what the write was: a create, or one that carried this version.
        """
        entry = self._intake.take(raw)
        version = entry.version
        if isinstance(version, str) or not self._ordered or not self._scope.holds(entry.key):
            return
        if is_leaving(raw):
            self._bury(entry.key, entry.uid, version, writer)
            return
        if version <= self._horizon:
            return
        if created or (base_version and base_version != str(version)):
            self._ours.sign(version, writer)
        selected = self._scope.selects(entry.label_map(), raw)
        if selected is not None:
            self._while_seen(entry.key, lambda: self._ours.write(entry.key, version, entry if selected else None))

    def note_delete(self, key: Key, raw: bytes, *, version: str = "", writer: Any = None) -> None:
        """Take the response of a delete: what is gone by it is not seen again, what only waits to go is.

        `version` is one that the object had, when the caller knows one.
        """
        gone = read_removal(raw)
        if gone is None:
            self.note_write(raw, writer=writer)
        elif self._ordered and self._scope.holds(key):
            seen = self.get(key)
            uid = gone.uid or ("" if seen is None else seen.uid)
            self._bury(key, uid, max(number_of(version) or 0, gone.version), writer)

    def _bury(self, key: Key, uid: str, version: int, writer: Any) -> None:
        delivered = self._delivered_at(key)
        if delivered is not None and delivered.uid == uid:
            version = max(version, int(delivered.version))
        elif self._ours.was_removed(uid, writer) or 0 < version <= self._horizon:
            return

        def bury() -> None:
            self._ours.bury(key, uid, version=version, writer=writer)
            if version > self._horizon:
                self._ours.write(key, version, None)

        self._while_seen(key, bury)

    # What readers ask

    def get(self, key: Key) -> Entry | None:
        """Give the object of a key, as readers see it."""
        names = self._delivered.get(key.namespace)
        delivered = None if names is None else names.get(key.name)
        return self._ours.over(key, delivered) if self._ours else delivered

    def list(self, *, namespace: str = "", labels: LabelSelector | None = None) -> Entries:
        """Give the objects of a namespace, or of all, that a selector picks."""
        if labels is None or not labels.requirements:
            return self._all(namespace)
        keys = self._indexes.labels().narrow(labels)
        found = self._all(namespace) if keys is None else self._at(keys, namespace)
        return [entry for entry in found if labels.matches(entry.label_map())]

    def find(self, index: str, value: Hashable, *, namespace: str = "") -> Entries:
        """Give the objects that an index has under a value.

        Raises: ValueError when there is no such index.
        """
        return self._at(self._indexes.named(index).find(value), namespace)

    def owned_by(self, uid: str) -> Entries:
        """Give the objects that name this uid as an owner."""
        return self._at(self._indexes.owners().find(uid), "")

    def add_index(self, name: str, values: Values) -> None:
        """Declare an index, now or at any time later.

        Raises: ValueError when the name is taken.
        """
        self._indexes.add(name, values)

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

    def delivered(self) -> Entries:
        """Give what is delivered, without own writes: what subscribers know."""
        return [entry for names in list(self._delivered.values()) for entry in list(names.values())]

    @property
    def version(self) -> str:
        """The version up to which everything is delivered; "" before the first list."""
        return self._version

    def stats(self) -> StoreStats:
        """Give the store in numbers."""
        entries = self.delivered()
        size = sum(entry.size for entry in entries)
        return StoreStats(len(entries), size, len(self._ours), self._version, self._indexes.names())

    # How it is done

    def _delivered_at(self, key: Key) -> Entry | None:
        names = self._delivered.get(key.namespace)
        return None if names is None else names.get(key.name)

    def _is_news(self, entry: Entry) -> bool:
        old = self._delivered_at(entry.key)
        if isinstance(entry.version, str) or not self._ordered:
            self._lose_order()
            return old is None or old.version != entry.version or not entry.version
        if old is None:
            return entry.version >= self._horizon
        return isinstance(old.version, str) or entry.version > old.version

    def _is_end_of(self, old: Entry, last: Entry) -> bool:
        if isinstance(last.version, str) or isinstance(old.version, str):
            self._lose_order()
            return old.uid == last.uid
        return old.version <= last.version

    def _lose_order(self) -> None:
        """Versions are no numbers after all: from now on they compare for equality only."""
        if self._ordered:
            self._ordered = False
            _log.warning("resourceVersions are no numbers: own writes are seen late", extra={"kind": str(self.kind)})
            for key in self._ours.touched():
                self._indexes.move(self.get(key), self._delivered_at(key))
            self._ours.clear()

    def _deliver(
        self, key: Key, new: Entry | None, version: Version, writer: Any, *, last: Entry | None = None
    ) -> None:
        """Make `new` what is delivered, None for nothing, and tell everybody."""
        old = self._delivered_at(key)
        seen = self.get(key)
        if new is not None:
            self._delivered.setdefault(key.namespace, {})[key.name] = new
            self._ours.bury_again(new)
        else:
            self._discard(key)
        if old is not None and (new is None or new.uid != old.uid):
            self._ours.removed(old.uid, version)
        self._indexes.move(seen, self.get(key))
        self._advance(version)
        for subscription in tuple(self._subscriptions):
            subscription.tell(key, old if last is None else last, new, writer)

    def _discard(self, key: Key) -> None:
        names = self._delivered[key.namespace]
        del names[key.name]
        if not names:
            del self._delivered[key.namespace]

    def _advance(self, version: Version | None) -> None:
        """Move the horizon, and let go of what of ours it has reached."""
        if not isinstance(version, int):
            self._version = version or self._version
            return
        if version <= self._horizon:
            return
        self._horizon = version
        self._version = str(version)
        for key, uid in self._ours.reached(version):
            self._while_seen(key, lambda key=key, uid=uid: self._settle(key, uid))  # type: ignore[misc]

    def _settle(self, key: Key, uid: str) -> None:
        self._ours.settle(key, uid, horizon=self._horizon, delivered_uid=self._delivered_uid(key))

    def _delivered_uid(self, key: Key) -> str:
        entry = self._delivered_at(key)
        return "" if entry is None else entry.uid

    def _check_age(self, resource_version: str) -> None:
        number = number_of(resource_version)
        if number is None:
            self._lose_order()
        if not self._ordered or number is None or number >= self._horizon:
            self._refused = 0
            return
        self._refused += 1
        facts = {"kind": str(self.kind), "version": resource_version, "delivered": self._version}
        if self._refused < _REFUSALS:
            raise Expired(
                f"list at version {resource_version} is older than {self._version}, which is delivered already",
                verb="list",
                kind=self.kind.kind,
            )
        _log.warning("The server's history has started over: taking an older list", extra=facts)
        self._refused = 0
        self._horizon = -1
        for key in self._ours.touched():
            self._indexes.move(self.get(key), self._delivered_at(key))
        self._ours.clear()

    def _stage(self, names: dict[str, Entry], name: str, entry: Entry | None) -> None:
        self._indexes.stage(names.get(name), entry)
        if entry is not None:
            names[name] = entry
        else:
            names.pop(name, None)

    def _replace(self, staged: dict[str, dict[str, Entry]], version: str) -> Changes:
        """Put the new state in the place of the old one, and give every difference."""
        first = not self._delivered
        changes = list(_differences(self._delivered, staged))
        seen = [self.get(key) for key, _, _ in changes] if self._indexes and not first else []
        self._delivered = {namespace: names for namespace, names in staged.items() if names}
        self._ours.replaced(changes, number_of(version) or 0)
        self._ours.settle_nameless(self._delivered_uid)
        if first:
            self._indexes.swap({key: self.get(key) for key in self._ours.touched()}, self._delivered_at)
        for (key, _, _), before in zip(changes, seen, strict=False):
            self._indexes.move(before, self.get(key))
        self._advance(number_of(version) if self._ordered else version)
        return changes

    def _while_seen(self, key: Key, change: Callable[[], None]) -> None:
        """Do something that may change what readers see of a key, and keep the indexes right."""
        seen = self.get(key)
        change()
        self._indexes.move(seen, self.get(key))

    def _all(self, namespace: str = "") -> Entries:
        groups = [self._delivered.get(namespace, {})] if namespace else list(self._delivered.values())
        delivered = [entry for names in groups for entry in list(names.values())]
        if not self._ours:
            return delivered
        ours = {key for key in self._ours.touched() if not namespace or key.namespace == namespace}
        seen = [entry for entry in delivered if entry.key not in ours]
        return [*seen, *self._at(tuple(ours), namespace)]

    def _at(self, keys: tuple[Key, ...], namespace: str) -> Entries:
        found = [self.get(key) for key in keys if not namespace or key.namespace == namespace]
        return [entry for entry in found if entry is not None]

    def _pack(self) -> None:
        """Hold compressed what came before there was a dictionary; that is little, and happens once."""
        if self._packed or self._packer is None or not self._packer.train():
            return
        self._packed = True
        for names in self._delivered.values():
            for name, entry in list(names.items()):
                names[name] = self._intake.pack(entry)

    def _unsubscribe(self, subscription: Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)


def _differences(old: dict[str, dict[str, Entry]], new: dict[str, dict[str, Entry]]) -> Iterator[Change]:
    """Compare two states; what is the same entry in both is no difference."""
    for namespace, names in new.items():
        before = old.get(namespace, {})
        for name, entry in names.items():
            known = before.get(name)
            if known is not entry:
                yield entry.key, known, entry
    for namespace, names in old.items():
        after = new.get(namespace, {})
        for name, entry in names.items():
            if name not in after:
                yield entry.key, entry, None
