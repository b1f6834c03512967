"""The two layers of a store: entries in, changes out; what readers see and its indexes are always consistent.

Numbers in brackets are the rules of `konverge.cache.store`. Nothing here needs JSON, subscribers or the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from konverge.cache.entries import Entry, Version, parse_version
from konverge.cache.indexes import Indexes
from konverge.cache.overlay import Overlay
from konverge.cache.removals import Removals
from konverge.errors import Expired
from konverge.objects import Key, Kind

__all__ = ["Change", "Layers"]

_log = logging.getLogger("konverge.cache")

Entries: TypeAlias = list[Entry]
Objects: TypeAlias = dict[str, dict[str, Entry]]
"""Entries by namespace and name. This makes the index by namespace free, and needs no key objects."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """A change of what is delivered, from `old` to `new`; None means no object."""

    key: Key
    old: Entry | None
    new: Entry | None
    writer: Any = None


class Layers:
    """What is delivered, and the overlay of own writes."""

    def __init__(self, kind: Kind, *, ordered: bool) -> None:
        self._kind = kind
        self._delivered: Objects = {}
        self._staged: Objects | None = None
        self._overlay = Overlay()
        self._removals = Removals()
        self._ordered = ordered
        self._high_water_mark = -1
        self.version = ""  # up to which everything is delivered, as text
        self.indexes = Indexes(kind.kind, self.list_visible)

    # Reads

    def get(self, key: Key) -> Entry | None:
        """Return the object of a key, as readers see it [3]."""
        names = self._delivered.get(key.namespace)
        delivered = None if names is None else names.get(key.name)
        return self._overlay.resolve(key, delivered) if self._overlay else delivered

    def list_visible(self, namespace: str = "") -> Entries:
        """Return the objects of a namespace, or of all, as readers see them."""
        delivered = self.list_delivered(namespace)
        if not self._overlay:
            return delivered
        keys = {key for key in self._overlay.pending_keys() if not namespace or key.namespace == namespace}
        return [*(entry for entry in delivered if entry.key not in keys), *self.get_many(tuple(keys))]

    def get_many(self, keys: tuple[Key, ...], namespace: str = "") -> Entries:
        """Return the objects of some keys that exist and are in the namespace."""
        found = [self.get(key) for key in keys if not namespace or key.namespace == namespace]
        return [entry for entry in found if entry is not None]

    # The delivered layer

    def list_delivered(self, namespace: str = "") -> Entries:
        """Return what is delivered, without own writes."""
        groups = [self._delivered.get(namespace, {})] if namespace else list(self._delivered.values())
        return [entry for names in groups for entry in list(names.values())]

    def get_delivered(self, key: Key) -> Entry | None:
        """Return what is delivered for a key."""
        names = self._delivered.get(key.namespace)
        return None if names is None else names.get(key.name)

    def put(self, entry: Entry) -> Change | None:
        """Deliver a state from a watch; return None when it is stale."""
        old = self.get_delivered(entry.key)
        if not self._is_newer(entry, old):
            return None
        writer = self._overlay.writer_of(entry.version)  # before the high-water mark reaches it, which drops it
        self._deliver(entry.key, old, entry, entry.version)
        return Change(entry.key, old, entry, writer)

    def remove(self, last: Entry) -> Change | None:
        """Deliver the removal of an object, given its last state; return None when it is stale."""
        old = self.get_delivered(last.key)
        if old is not None and not self._is_removal_of(old, last):
            self.advance(last.version)
            return None
        if isinstance(last.version, int):
            self._removals.record(last.key, last.version)
        if old is None:
            self.advance(last.version)
            return None
        writer = self._overlay.deleter_of(old.uid) or self._overlay.writer_of(last.version)
        self._deliver(last.key, old, None, last.version)
        return Change(last.key, last if last.uid == old.uid else old, None, writer)

    def advance(self, version: Version) -> None:
        """Raise the high-water mark, and drop what it has reached from the overlay [5]."""
        if isinstance(version, str):
            self.version = version or self.version
        elif version > self._high_water_mark:
            self._high_water_mark = version
            self.version = str(version)
            for key, uid in self._overlay.pop_expired(version):
                before = self.get(key)
                self._overlay.expire(key, uid, high_water_mark=version, delivered_uid=self._delivered_uid(key))
                self.indexes.update(before, self.get(key))

    def complete(self, version: Version) -> None:
        """Record that everything up to a version is delivered: by a list or a bookmark."""
        if isinstance(version, int) and version >= self._high_water_mark:
            self._removals.reset(version)
        self.advance(version)

    # Lists

    @property
    def list_started(self) -> bool:
        """Whether a list is being read."""
        return self._staged is not None

    def begin(self) -> None:
        """Start a list, and discard one that was not finished."""
        self._staged = {}
        self.indexes.begin(first=not self._delivered)

    def restart_history(self) -> None:
        """Forget all versions: those of the next list are of another history, and may be lower [2]."""
        self._high_water_mark = -1
        self._clear_overlay()

    def known_entry(self, key: Key) -> Entry | None:
        """Return the delivered entry of a key for a list that has it too, unless versions have another meaning now."""
        return self.get_delivered(key) if self._high_water_mark >= 0 or not self._ordered else None

    def seen_entry(self, key: Key) -> Entry | None:
        """Return the entry that readers see, for an event that may be of an own write; as `known_entry` otherwise."""
        return self.get(key) if self._high_water_mark >= 0 or not self._ordered else None

    def stage(self, key: Key, entry: Entry | None) -> None:
        """Stage an object of a list, or its removal."""
        assert self._staged is not None
        names = self._staged.setdefault(key.namespace, {})
        self.indexes.stage(names.get(key.name), entry)
        if entry is not None:
            names[key.name] = entry
        else:
            names.pop(key.name, None)

    def swap(self, version: str) -> list[Change]:
        """Replace what is delivered with the staged list; return every difference.

        Raises: Expired when the list is older than the high-water mark; then nothing has changed.
        """
        staged, self._staged = self._staged or {}, None
        self._check_age(version)
        first = not self._delivered
        changes = list(_differences(self._delivered, staged))
        before = [self.get(change.key) for change in changes] if self.indexes and not first else []
        self._delivered = {namespace: names for namespace, names in staged.items() if names}
        self._overlay.record_list(changes, parse_version(version) or 0, self._delivered_uid)
        if first:
            self.indexes.swap({key: self.get(key) for key in self._overlay.pending_keys()}, self.get_delivered)
        for change, visible in zip(changes, before, strict=False):
            self.indexes.update(visible, self.get(change.key))
        self.complete(self._comparable(version))
        return changes

    def deletions_to_report(self, version: str) -> Entries:
        """Return the objects known only from own writes that are absent from the list ending at this version [11]."""
        number = parse_version(version)
        if number is None or self._staged is None or not self._ordered:
            return []
        staged = self._staged
        return [
            entry
            for entry in self._overlay.writes_until(number)
            if entry.uid != self._delivered_uid(entry.key)
            and entry.uid != _uid(staged.get(entry.key.namespace, {}).get(entry.key.name))
        ]

    def must_report_deletion(self, entry: Entry) -> bool:
        """Report whether the object of an own write is gone without an event [11]."""
        if not self._ordered or isinstance(entry.version, str):
            return False
        return entry.uid != self._delivered_uid(entry.key) and not self._overlay.is_deleted(entry.uid)

    def replace_entries(self, function: Callable[[Entry], Entry]) -> None:
        """Replace each delivered entry with another form of it."""
        for names in self._delivered.values():
            for name, entry in list(names.items()):
                names[name] = function(entry)

    # Own writes

    @property
    def pending(self) -> int:
        """The number of own writes and deletes that have not been delivered."""
        return len(self._overlay)

    def is_pending(self, version: Version) -> bool:
        """Report whether this version is above the high-water mark; False where versions are not ordered [4]."""
        return self._ordered and isinstance(version, int) and version > self._high_water_mark

    def record_writer(self, version: Version, writer: Any) -> None:
        """Record the writer of a version that is purely own [8]."""
        self._overlay.record_writer(int(version), writer)

    def add_write(self, key: Key, version: Version, entry: Entry | None) -> None:
        """Store the state after an own write; None when the object is not in the scope [5]."""
        before = self.get(key)
        self._overlay.add_write(key, int(version), entry)
        self.indexes.update(before, self.get(key))

    def add_tombstone(self, key: Key, uid: str, version: int, writer: Any) -> None:
        """Record an own delete; `version` is one that the object had, 0 when none is known [6]."""
        delivered = self.get_delivered(key)
        if not self._ordered or not uid:
            return
        if delivered is not None and delivered.uid == uid:
            version = max(version, int(delivered.version))
        elif self._overlay.record_delete_response(uid, writer) or 0 < version <= self._high_water_mark:
            return
        before = self.get(key)
        self._overlay.add_tombstone(key, uid, version=version, writer=writer)
        if version > self._high_water_mark:
            # An earlier object of the same name is gone as well.
            self._overlay.add_write(key, version, None)
        self.indexes.update(before, self.get(key))

    # Versions

    def _is_newer(self, entry: Entry, old: Entry | None) -> bool:
        if isinstance(entry.version, str) or not self._ordered:
            self._disable_ordering()
            return old is None or old.version != entry.version or not entry.version
        if old is None:
            return not self._removals.is_stale(entry.key, entry.version)
        return isinstance(old.version, str) or entry.version > old.version

    def _is_removal_of(self, old: Entry, last: Entry) -> bool:
        if isinstance(last.version, str) or isinstance(old.version, str):
            self._disable_ordering()
            return old.uid == last.uid
        return old.version <= last.version

    def _deliver(self, key: Key, old: Entry | None, new: Entry | None, version: Version) -> None:
        before = self.get(key) if self.indexes else None
        if new is not None:
            self._delivered.setdefault(key.namespace, {})[key.name] = new
            self._overlay.restore_tombstone(new)
        else:
            self._discard(key)
        if old is not None and (new is None or new.uid != old.uid):
            self._overlay.record_removal(old.uid, version)
        if self.indexes:
            self.indexes.update(before, self.get(key))
        self.advance(version)

    def _discard(self, key: Key) -> None:
        names = self._delivered[key.namespace]
        del names[key.name]
        if not names:
            del self._delivered[key.namespace]

    def _comparable(self, version: str) -> Version:
        number = parse_version(version) if self._ordered else None
        return version if number is None else number

    def _delivered_uid(self, key: Key) -> str:
        return _uid(self.get_delivered(key))

    def _check_age(self, version: str) -> None:
        number = parse_version(version)
        if number is None:
            self._disable_ordering()
        if self._ordered and number is not None and number < self._high_water_mark:
            text = f"list at version {version} is older than version {self.version}, which is already delivered"
            raise Expired(text, verb="list", kind=self._kind.kind)

    def _disable_ordering(self) -> None:
        """Compare versions only for equality from now on: they are not numbers [4]."""
        if self._ordered:
            self._ordered = False
            facts = {"kind": str(self._kind)}
            _log.warning("resourceVersions are not numbers: own writes are visible only after the watch", extra=facts)
            self._clear_overlay()

    def _clear_overlay(self) -> None:
        for key in self._overlay.pending_keys():
            self.indexes.update(self.get(key), self.get_delivered(key))
        self._overlay.clear()


def _uid(entry: Entry | None) -> str:
    return "" if entry is None else entry.uid


def _differences(old: Objects, new: Objects) -> Iterator[Change]:
    """Compare two states; an identical entry in both is not a difference."""
    for namespace, names in new.items():
        before = old.get(namespace, {})
        for name, entry in names.items():
            known = before.get(name)
            if known is not entry:
                yield Change(entry.key, known, entry)
    for namespace, names in old.items():
        after = new.get(namespace, {})
        for name, entry in names.items():
            if name not in after:
                yield Change(entry.key, entry, None)
