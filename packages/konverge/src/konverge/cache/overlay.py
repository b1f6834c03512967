"""The overlay: the responses of own writes that the watch has not delivered yet.

client-go calls this a mutation cache. Numbers in brackets are the rules of `konverge.cache.store`. Versions are numbers
here: where they are not, there is no overlay [4].
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import msgspec

from konverge.cache.entries import Entry, Version
from konverge.objects import Key

__all__ = ["Overlay"]

_MAX_UNVERSIONED_TOMBSTONES = 1000
"""How many deletes of objects that this cache never saw are remembered; beyond that, the oldest is dropped."""

_MAX_REMOVED_UIDS = 256
"""How many delivered removals are remembered: a response may arrive long after the event that it caused."""


class _PendingWrite(msgspec.Struct, frozen=True, gc=False):
    version: int
    entry: Entry | None  # None: since this version the object is not in the cache's scope, or no longer
    last: Entry | None  # the last state that readers saw


class _Tombstone(msgspec.Struct, frozen=True, gc=False):
    key: Key
    version: int  # the last version that the deleter knew; 0 when it knew none
    writer: Any


class _Change(Protocol):
    @property
    def old(self) -> Entry | None: ...

    @property
    def new(self) -> Entry | None: ...


class _LocalDelete(msgspec.Struct, frozen=True, gc=False):
    writer: Any


class Overlay:
    """Pending own writes by key, tombstones of own deletes by uid, and the writer of each version."""

    def __init__(self) -> None:
        self._writes: dict[Key, _PendingWrite] = {}
        self._tombstones: dict[str, _Tombstone] = {}
        self._unversioned: dict[str, None] = {}  # uids of the tombstones without a version, oldest first
        # The last uids whose removal was delivered; the value is set for those that were own deletes.
        self._removed: dict[str, _LocalDelete | None] = {}
        self._writers: dict[int, Any] = {}
        # What expires at a version: a write (uid is ""), the tombstone of a uid, or only a writer (_NO_KEY).
        self._expiries: list[tuple[int, Key, str]] = []

    def __bool__(self) -> bool:
        return bool(self._writes or self._tombstones)

    def __len__(self) -> int:
        return len(self._writes) + len(self._tombstones)

    def resolve(self, key: Key, delivered: Entry | None) -> Entry | None:
        """Return what a reader sees where `delivered` is delivered [3]; a pending write is always newer."""
        write = self._writes.get(key)
        entry = delivered if write is None else write.entry
        return None if entry is not None and entry.uid in self._tombstones else entry

    def pending_keys(self) -> set[Key]:
        """Return the keys where readers may see something other than what is delivered."""
        return self._writes.keys() | {tombstone.key for tombstone in list(self._tombstones.values())}

    def writes_until(self, version: int) -> list[Entry]:
        """Return the last visible state of each object with a pending write up to a version.

        Objects that this process deleted since are included, because other subscribers may have seen them.
        """
        return [write.last for write in self._writes.values() if write.last is not None and write.version <= version]

    def is_deleted(self, uid: str) -> bool:
        """Report whether an object is known to be gone: an own delete, or a removal that was delivered recently."""
        return uid in self._tombstones or uid in self._removed

    def add_write(self, key: Key, version: int, entry: Entry | None) -> None:
        """Store the state after an own write, unless a later one is stored already."""
        if entry is not None:
            self.restore_tombstone(entry)
        write = self._writes.get(key)
        if write is None or write.version < version:
            last = entry if entry is not None or write is None else write.last
            self._writes[key] = _PendingWrite(version, entry, last)
            heapq.heappush(self._expiries, (version, key, ""))
        tombstone = None if entry is None else self._tombstones.get(entry.uid)
        if tombstone is not None and entry is not None and tombstone.version < version:
            self.add_tombstone(key, entry.uid, version=version, writer=tombstone.writer)

    def add_tombstone(self, key: Key, uid: str, *, version: int, writer: Any) -> None:
        """Record that the object with this uid is deleted; `version` is one that it had, 0 when none is known [6]."""
        write = self._writes.get(key)
        if write is not None and write.entry is not None and write.entry.uid == uid:
            version = max(version, write.version)
        self._tombstones[uid] = _Tombstone(key, version, writer)
        self._unversioned.pop(uid, None)
        if version:
            heapq.heappush(self._expiries, (version, key, uid))
            return
        self._unversioned[uid] = None
        if len(self._unversioned) > _MAX_UNVERSIONED_TOMBSTONES:
            self.drop_tombstone(next(iter(self._unversioned)), 0)

    def drop_tombstone(self, uid: str, high_water_mark: Version) -> None:
        """Drop a tombstone if the delete has been delivered.

        The caller checks that the object is not delivered any more; here, the high-water mark must have reached the
        tombstone's version.
        """
        tombstone = self._tombstones.get(uid)
        if tombstone is not None and isinstance(high_water_mark, int) and tombstone.version <= high_water_mark:
            del self._tombstones[uid]
            self._unversioned.pop(uid, None)
            self._remember(uid, _LocalDelete(tombstone.writer))

    def record_removal(self, uid: str, version: Version) -> None:
        """Record that the removal of an object was delivered, at a version [6]."""
        self._remember(uid, self._removed.get(uid))
        self.drop_tombstone(uid, version)

    def record_list(self, changes: Iterable[_Change], version: int, delivered_uid: Callable[[Key], str]) -> None:
        """Record what a list changed [6]; from now on no earlier write counts as purely own [9]."""
        self._writers.clear()
        for uid, tombstone in self._tombstones.items():
            self._tombstones[uid] = msgspec.structs.replace(tombstone, writer=None)
        for change in changes:
            if change.old is not None and (change.new is None or change.new.uid != change.old.uid):
                self.record_removal(change.old.uid, version)
            if change.new is not None and self._removed:
                self.restore_tombstone(change.new)
        for uid in list(self._unversioned):
            # A delete without a version has been delivered if the list does not show the object.
            if delivered_uid(self._tombstones[uid].key) != uid:
                self.drop_tombstone(uid, 0)

    def record_delete_response(self, uid: str, writer: Any) -> bool:
        """Record the response of an own delete; report whether the removal was delivered before the response."""
        if uid not in self._removed:
            return False
        self._remember(uid, _LocalDelete(writer))
        return True

    def restore_tombstone(self, entry: Entry) -> None:
        """Add the tombstone of an own delete again if the object is delivered again, or an own write shows it.

        Its earlier removal meant only that the object no longer matched the selector, not that it was gone.
        """
        deleted = self._removed.pop(entry.uid, None) if self._removed else None
        if deleted is not None:
            self.add_tombstone(entry.key, entry.uid, version=int(entry.version), writer=deleted.writer)

    def _remember(self, uid: str, deleted: _LocalDelete | None) -> None:
        self._removed.pop(uid, None)
        self._removed[uid] = deleted
        if len(self._removed) > _MAX_REMOVED_UIDS:
            del self._removed[next(iter(self._removed))]

    def record_writer(self, version: int, writer: Any) -> None:
        """Record the writer of a version that is purely own [8]."""
        self._writers[version] = writer
        heapq.heappush(self._expiries, (version, _NO_KEY, ""))

    def writer_of(self, version: object) -> Any:
        """Return the writer of this version if it is purely own, else None."""
        return self._writers.get(version) if isinstance(version, int) else None

    def deleter_of(self, uid: str) -> Any:
        """Return the writer that deleted the object with this uid, or None."""
        tombstone = self._tombstones.get(uid)
        return None if tombstone is None else tombstone.writer

    def clear(self) -> None:
        """Drop everything."""
        self._writes.clear()
        self._tombstones.clear()
        self._unversioned.clear()
        self._removed.clear()
        self._writers.clear()
        self._expiries.clear()

    def pop_expired(self, high_water_mark: int) -> Iterator[tuple[Key, str]]:
        """Yield the key and uid of what the high-water mark has reached [5]; pass each of them to `expire`."""
        while self._expiries and self._expiries[0][0] <= high_water_mark:
            version, key, uid = heapq.heappop(self._expiries)
            self._writers.pop(version, None)
            if key is not _NO_KEY:
                yield key, uid

    def expire(self, key: Key, uid: str, *, high_water_mark: int, delivered_uid: str) -> None:
        """Drop what the high-water mark has reached; the tombstone of an object that is still delivered stays [6]."""
        if uid:
            if uid != delivered_uid:
                self.drop_tombstone(uid, high_water_mark)
            return
        write = self._writes.get(key)
        if write is not None and write.version <= high_water_mark:
            del self._writes[key]


_NO_KEY = Key("", "")
