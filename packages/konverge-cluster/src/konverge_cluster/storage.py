"""Versioned objects in memory: one revision for all kinds, and a bounded history for each collection.

This module handles bytes, keys and revisions; it has no Kubernetes semantics. Rules that hold here:

1. Every write increments the single revision of the storage, whatever its collection. The writer encodes the object
   with `storage.next_revision` and stores it in the same step, without an `await` in between.
2. An entry does not change after it is stored, except for its cache.
3. A collection keeps its latest changes: at least `history` of them, unless all collections together hold more than
   `history_bytes`; then the collection with the largest history drops a quarter of it. From the changes it derives the
   state at an earlier revision and the changes since. A request for dropped ones raises `RevisionExpired`.
4. Everything is synchronous and single-threaded. A subscriber of a collection is called after each change, and reads
   the history from its own position; there is no buffer that could overflow.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["Change", "Collection", "Entry", "RevisionExpired", "Storage"]

HISTORY: Final = 10_000
HISTORY_BYTES: Final = 16 * 1024 * 1024
_CACHED_CHANGES: Final = 256
_CHECKS: Final = 16

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"


class RevisionExpired(LookupError):
    """The requested revision is older than the history of the collection; `oldest` is the oldest available one."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} is older than {oldest}")
        self.revision = revision
        self.oldest = oldest


@dataclass(slots=True, eq=False)
class Entry:
    """One state of one object: its bytes, and the fields that reads and selectors need without decoding.

    `key` is "namespace/name", or "name" in a cluster-scoped collection. `encoding_version` is the version in which the
    bytes are encoded. `cache` is for readers: values derived from the bytes.
    """

    key: str
    raw: bytes
    revision: int
    uid: str
    labels: Mapping[str, str] | None = None
    encoding_version: object = None
    cache: dict[Any, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Change:
    """One change of a collection. `entry` is the new state; for a deletion the last state, at the deletion's revision.

    `cache` is for readers: an event is encoded once for all watches. It is emptied when many later changes were stored,
    by when most watches have sent the event.
    """

    kind: str
    revision: int
    entry: Entry
    previous: Entry | None
    cache: dict[Any, Any] = field(default_factory=dict)


class Collection:
    """The objects of one resource, in the order of their keys, with the history of their changes.

    Promises: `entries` and `entries_at` are sorted by key, as on the real server. `entries_at(revision)` is exactly the
    state after the write with that revision. `changes_from` returns every change, each once.
    """

    def __init__(self, name: tuple[str, str], *, history: int, history_bytes: int) -> None:
        self.name = name
        self._entries: dict[str, Entry] = {}
        self._keys: list[str] = []
        self._sorted = True
        self._log: list[Change] = []
        self._log_start = 0
        self._log_bytes = 0
        self._history = history
        self._history_bytes = history_bytes
        self.compact_revision = 0
        self._subscribers: dict[object, Callable[[], None]] = {}

    # Reading.

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def entries(self, namespace: str = "", start: str = "") -> list[Entry]:
        """Return the current entries in order, optionally of one namespace, from the key `start` on."""
        return [self._entries[key] for key in self._in_range(namespace, start)]

    def entries_at(self, revision: int, namespace: str = "", start: str = "") -> list[Entry]:
        """Return the entries as they were after `revision`.

        Raises: RevisionExpired when the history does not reach back that far.
        """
        undone = self._since(revision)
        if not undone:
            return self.entries(namespace, start)
        state = {key: self._entries[key] for key in self._in_range(namespace, start)}
        prefix = f"{namespace}/" if namespace else ""
        for change in reversed(undone):
            key = change.entry.key
            if key < start or not key.startswith(prefix):
                continue
            if change.previous is None:
                del state[key]
            else:
                state[key] = change.previous
        return [state[key] for key in sorted(state)]

    def count(self, namespace: str = "", start: str = "") -> int:
        return len(self._in_range(namespace, start))

    def _in_range(self, namespace: str, start: str) -> list[str]:
        keys = self._ordered()
        first = f"{namespace}/" if namespace else ""
        low = bisect_left(keys, max(first, start)) if first or start else 0
        # "0" is the character after "/": the first key that no longer belongs to the namespace.
        high = bisect_left(keys, f"{namespace}0") if namespace else len(keys)
        return keys[low:high]

    def _ordered(self) -> list[str]:
        if not self._sorted:
            # New keys are at the end of a sorted run, so this sort is nearly linear.
            self._keys.sort()
            self._sorted = True
        return self._keys

    # History.

    def _since(self, revision: int) -> list[Change]:
        if revision < self.compact_revision:
            raise RevisionExpired(revision, self.compact_revision)
        return self._log[self._first_after(revision) :]

    def _first_after(self, revision: int) -> int:
        low, high = 0, len(self._log)
        while low < high:
            middle = (low + high) // 2
            if self._log[middle].revision <= revision:
                low = middle + 1
            else:
                high = middle
        return low

    def position_after(self, revision: int) -> int:
        """Return the position in the history of the first change after `revision`, for `changes_from`.

        Raises: RevisionExpired when the history does not reach back that far.
        """
        if revision < self.compact_revision:
            raise RevisionExpired(revision, self.compact_revision)
        return self._log_start + self._first_after(revision)

    def changes_from(self, position: int) -> list[Change] | None:
        """Return the changes from a position on; None when they have been dropped. Add their number to continue."""
        if position < self._log_start:
            return None
        return self._log[position - self._log_start :]

    def subscribe(self, token: object, callback: Callable[[], None]) -> None:
        """Call `callback` after every change, until `unsubscribe` with the same token."""
        self._subscribers[token] = callback

    def unsubscribe(self, token: object) -> None:
        self._subscribers.pop(token, None)

    @property
    def watcher_count(self) -> int:
        return len(self._subscribers)

    # Writing, by the storage only.

    def _apply(self, change: Change) -> None:
        key = change.entry.key
        if change.kind == DELETED:
            del self._entries[key]
            keys = self._ordered()
            del keys[bisect_left(keys, key)]
        else:
            if key not in self._entries:
                self._sorted = self._sorted and (not self._keys or self._keys[-1] < key)
                self._keys.append(key)
            self._entries[key] = change.entry
        self._log.append(change)
        self._log_bytes += len(change.entry.raw)
        if len(self._log) > _CACHED_CHANGES:
            self._log[-_CACHED_CHANGES - 1].cache.clear()
        if len(self._log) > self._history * 5 // 4 or self._log_bytes > self._history_bytes:
            self._trim()
        for callback in list(self._subscribers.values()):
            callback()

    def _trim(self) -> None:
        drop = max(0, len(self._log) - self._history)
        size = self._log_bytes - sum(len(change.entry.raw) for change in self._log[:drop])
        while size > self._history_bytes and drop < len(self._log) - 1:
            size -= len(self._log[drop].entry.raw)
            drop += 1
        self._drop(drop)

    def _drop(self, count: int) -> None:
        if count:
            dropped = self._log[:count]
            self.compact_revision = max(self.compact_revision, dropped[-1].revision)
            self._log_bytes -= sum(len(change.entry.raw) for change in dropped)
            del self._log[:count]
            self._log_start += count

    def _compact(self, revision: int) -> None:
        self._drop(self._first_after(revision))
        self.compact_revision = max(self.compact_revision, revision)


class Storage:
    """All collections under one revision.

    Promises: `revision` never decreases; every change has its own revision; a failed write changes nothing.
    """

    def __init__(self, *, history: int = HISTORY, history_bytes: int = HISTORY_BYTES) -> None:
        self._collections: dict[tuple[str, str], Collection] = {}
        self._history = history
        self._history_bytes = history_bytes
        self._unchecked_bytes = 0
        # The first revision of etcd is 1: an empty store without a write.
        self.revision = 1
        self.compact_revision = 0
        self._advance_callbacks: dict[object, Callable[[], None]] = {}

    def call_on_advance(self, token: object, callback: Callable[[], None]) -> None:
        """Call `callback` once, with the next change of any collection; `cancel_call` with the token prevents it."""
        self._advance_callbacks[token] = callback

    def cancel_call(self, token: object) -> None:
        """Forget a callback."""
        self._advance_callbacks.pop(token, None)

    @property
    def next_revision(self) -> int:
        """The revision that the next write gets."""
        return self.revision + 1

    def collection(self, name: tuple[str, str]) -> Collection:
        """Return the collection with that name; create it on first use."""
        found = self._collections.get(name)
        if found is None:
            found = Collection(name, history=self._history, history_bytes=self._history_bytes)
            found.compact_revision = self.compact_revision
            self._collections[name] = found
        return found

    def put(self, collection: Collection, entry: Entry) -> None:
        """Store an entry that was encoded for `next_revision`; replace the entry with the same key."""
        if entry.revision != self.revision + 1:
            raise ValueError(f"entry has revision {entry.revision}, but the next one is {self.next_revision}")
        previous = collection.get(entry.key)
        self._apply(collection, Change(MODIFIED if previous else ADDED, entry.revision, entry, previous))

    def delete(self, collection: Collection, last: Entry) -> None:
        """Remove the object with `last.key`; `last` is its final state, encoded for `next_revision`."""
        if last.revision != self.revision + 1:
            raise ValueError(f"entry has revision {last.revision}, but the next one is {self.next_revision}")
        previous = collection.get(last.key)
        if previous is None:
            raise KeyError(last.key)
        self._apply(collection, Change(DELETED, last.revision, last, previous))

    def _apply(self, collection: Collection, change: Change) -> None:
        self.revision = change.revision
        self._unchecked_bytes += len(change.entry.raw)
        if self._unchecked_bytes * _CHECKS > self._history_bytes:
            self._unchecked_bytes = 0
            self._limit_history()
        collection._apply(change)
        self._advanced()

    def _limit_history(self) -> None:
        """Drop old changes of the largest histories until all together are small enough."""
        collections = self._collections.values()
        while sum(one._log_bytes for one in collections) > self._history_bytes:
            largest = max(collections, key=lambda one: one._log_bytes)
            largest._drop(max(1, len(largest._log) // 4))

    def _advanced(self) -> None:
        if self._advance_callbacks:
            callbacks, self._advance_callbacks = self._advance_callbacks, {}
            for callback in callbacks.values():
                callback()

    def compact(self, revision: int | None = None) -> None:
        """Drop the history of every collection up to a revision (default: the current one)."""
        until = self.revision if revision is None else min(revision, self.revision)
        self.compact_revision = max(self.compact_revision, until)
        for collection in self._collections.values():
            collection._compact(until)

    def __iter__(self) -> Iterator[Collection]:
        return iter(list(self._collections.values()))
