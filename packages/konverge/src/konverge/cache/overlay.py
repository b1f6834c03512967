"""The layer of our own writes: what the server answered us and its watch has not told yet.

Numbers in brackets are the rules of `konverge.cache.store`. Versions are numbers here: where they are not, there is no
such layer [4].
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import msgspec

from konverge.cache.entries import Entry, Version
from konverge.objects import Key

__all__ = ["Overlay"]

_NAMELESS_GRAVES = 1000
"""How many deletes of objects that this cache never saw are remembered; of more, the oldest are forgotten."""

_REMEMBERED = 256
"""How many uids that are gone are remembered: a response may come long after what it caused was delivered."""


class _Own(msgspec.Struct, frozen=True, gc=False):
    version: int
    entry: Entry | None  # None: since this version the object is not (or no longer) in the cache's scope
    last: Entry | None  # what readers have seen last


class _Grave(msgspec.Struct, frozen=True, gc=False):
    key: Key
    version: int  # the last version that the deleter knew of; 0 when it knew none
    writer: Any


class _Change(Protocol):
    @property
    def old(self) -> Entry | None: ...

    @property
    def new(self) -> Entry | None: ...


class _Deleted(msgspec.Struct, frozen=True, gc=False):
    writer: Any


class Overlay:
    """Responses of own writes by key, own deletes by uid, and who wrote which version."""

    def __init__(self) -> None:
        self._written: dict[Key, _Own] = {}
        self._graves: dict[str, _Grave] = {}
        self._nameless: dict[str, None] = {}  # uids of the graves without a version, oldest first
        self._removed: dict[
            str, _Deleted | None
        ] = {}  # the last uids whose removal was delivered, and who deleted them
        self._writers: dict[int, Any] = {}
        self._due: list[tuple[int, Key, str]] = []  # a version, and what goes with it: a write, or the grave of a uid

    def __bool__(self) -> bool:
        return bool(self._written or self._graves)

    def __len__(self) -> int:
        return len(self._written) + len(self._graves)

    def over(self, key: Key, delivered: Entry | None) -> Entry | None:
        """Give what a reader sees where this is delivered [3]: an own write is always newer."""
        own = self._written.get(key)
        entry = delivered if own is None else own.entry
        return None if entry is not None and entry.uid in self._graves else entry

    def touched(self) -> set[Key]:
        """Give the keys at which readers may see something else than what is delivered."""
        return self._written.keys() | {grave.key for grave in list(self._graves.values())}

    def written_until(self, horizon: int) -> list[Entry]:
        """Give the last states that own writes left up to a version; what we deleted others may have seen."""
        return [own.last for own in self._written.values() if own.last is not None and own.version <= horizon]

    def is_gone(self, uid: str) -> bool:
        """Tell whether an object is known to be gone: we deleted it, or its removal was delivered not long ago."""
        return uid in self._graves or uid in self._removed

    def write(self, key: Key, version: int, entry: Entry | None) -> None:
        """Keep the state that an own write left, unless a later one is kept already."""
        own = self._written.get(key)
        if own is None or own.version < version:
            last = entry if entry is not None or own is None else own.last
            self._written[key] = _Own(version, entry, last)
            heapq.heappush(self._due, (version, key, ""))
        grave = None if entry is None else self._graves.get(entry.uid)
        if grave is not None and entry is not None and grave.version < version:
            self.bury(key, entry.uid, version=version, writer=grave.writer)

    def bury(self, key: Key, uid: str, *, version: int, writer: Any) -> None:
        """Note that the object of this uid is gone for good; `version` is one that it had, 0 when none is known [6]."""
        own = self._written.get(key)
        if own is not None and own.entry is not None and own.entry.uid == uid:
            version = max(version, own.version)
        self._graves[uid] = _Grave(key, version, writer)
        self._nameless.pop(uid, None)
        if version:
            heapq.heappush(self._due, (version, key, uid))
            return
        self._nameless[uid] = None
        if len(self._nameless) > _NAMELESS_GRAVES:
            self.exhume(next(iter(self._nameless)), 0)

    def exhume(self, uid: str, horizon: Version) -> None:
        """Forget a delete if it has been delivered: what is delivered does not show the object, and is late enough."""
        grave = self._graves.get(uid)
        if grave is not None and isinstance(horizon, int) and grave.version <= horizon:
            del self._graves[uid]
            self._nameless.pop(uid, None)
            self._remember(uid, _Deleted(grave.writer))

    def removed(self, uid: str, version: Version) -> None:
        """Note that the removal of an object was delivered, at a version [6]."""
        self._remember(uid, self._removed.get(uid))
        self.exhume(uid, version)

    def replaced(self, changes: Iterable[_Change], version: int, delivered_uid: Callable[[Key], str]) -> None:
        """Note what a list changed [6]; from now on nothing is taken for purely ours [9]."""
        self._writers.clear()
        for uid, grave in self._graves.items():
            self._graves[uid] = msgspec.structs.replace(grave, writer=None)
        for change in changes:
            if change.old is not None and (change.new is None or change.new.uid != change.old.uid):
                self.removed(change.old.uid, version)
            if change.new is not None and self._removed:
                self.bury_again(change.new)
        for uid in list(self._nameless):
            # A delete without a version has happened, where the list does not show the object.
            if delivered_uid(self._graves[uid].key) != uid:
                self.exhume(uid, 0)

    def was_removed(self, uid: str, writer: Any) -> bool:
        """Tell whether the removal of an object that we deleted was delivered before the response came."""
        if uid not in self._removed:
            return False
        self._remember(uid, _Deleted(writer))
        return True

    def bury_again(self, entry: Entry) -> None:
        """Where an object that we deleted is delivered once more, it had only left the selector before: hide it."""
        deleted = self._removed.pop(entry.uid, None) if self._removed else None
        if deleted is not None:
            self.bury(entry.key, entry.uid, version=int(entry.version), writer=deleted.writer)

    def _remember(self, uid: str, deleted: _Deleted | None) -> None:
        self._removed.pop(uid, None)
        self._removed[uid] = deleted
        if len(self._removed) > _REMEMBERED:
            del self._removed[next(iter(self._removed))]

    def sign(self, version: int, writer: Any) -> None:
        """Note who wrote a version that is purely ours [8]."""
        self._writers[version] = writer
        heapq.heappush(self._due, (version, _NO_KEY, ""))

    def writer_of(self, version: object) -> Any:
        """Give who wrote this version, if it is purely ours."""
        return self._writers.get(version) if isinstance(version, int) else None

    def deleter_of(self, uid: str) -> Any:
        """Give who deleted the object of this uid, if we did."""
        grave = self._graves.get(uid)
        return None if grave is None else grave.writer

    def clear(self) -> None:
        """Forget everything."""
        for kept in (self._written, self._graves, self._nameless, self._removed, self._writers, self._due):
            kept.clear()

    def reached(self, horizon: int) -> Iterator[tuple[Key, str]]:
        """Give what delivered has reached now [5], as key and uid; `settle` each of them."""
        while self._due and self._due[0][0] <= horizon:
            version, key, uid = heapq.heappop(self._due)
            self._writers.pop(version, None)
            if key is not _NO_KEY:
                yield key, uid

    def settle(self, key: Key, uid: str, *, horizon: int, delivered_uid: str) -> None:
        """Let go of what delivered has reached; the delete of an object still delivered stays [6]."""
        if uid:
            if uid != delivered_uid:
                self.exhume(uid, horizon)
            return
        own = self._written.get(key)
        if own is not None and own.version <= horizon:
            del self._written[key]


_NO_KEY = Key("", "")
