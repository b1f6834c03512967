"""The two layers of a store, as values: entries in, changes out; what readers see, and the indexes of it, always right.

Numbers in brackets are the rules of `konverge.cache.store`. Nothing here knows of JSON, of subscribers or of waiting.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from konverge.cache.entries import Entry, Version, number_of
from konverge.cache.indexes import Indexes
from konverge.cache.overlay import Overlay
from konverge.errors import Expired
from konverge.objects import Key, Kind

__all__ = ["Change", "Layers"]

_log = logging.getLogger("konverge.cache")

_REFUSALS = 5
"""So many lists in a row must be older than the horizon before they are believed: history has started over [2]."""

Entries: TypeAlias = list[Entry]
Objects: TypeAlias = dict[str, dict[str, Entry]]
"""Entries by namespace and name: the index by namespace is for free, and so is the key."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """A change of what is delivered, from `old` to `new`; None is nothing."""

    key: Key
    old: Entry | None
    new: Entry | None
    writer: Any = None


class Layers:
    """What is delivered and what is ours."""

    def __init__(self, kind: Kind, *, ordered: bool) -> None:
        self._kind = kind
        self._delivered: Objects = {}
        self._staged: Objects | None = None
        self._ours = Overlay()
        self._ordered = ordered
        self._horizon = -1
        self._refused = 0
        self.version = ""  # up to which everything is delivered, as text
        self.indexes = Indexes(kind.kind, self.seen)

    # What readers see

    def get(self, key: Key) -> Entry | None:
        """Give the object of a key [3]."""
        names = self._delivered.get(key.namespace)
        delivered = None if names is None else names.get(key.name)
        return self._ours.over(key, delivered) if self._ours else delivered

    def seen(self, namespace: str = "") -> Entries:
        """Give all objects of a namespace, or of all."""
        delivered = self.delivered(namespace)
        if not self._ours:
            return delivered
        ours = {key for key in self._ours.touched() if not namespace or key.namespace == namespace}
        return [*(entry for entry in delivered if entry.key not in ours), *self.at(tuple(ours))]

    def at(self, keys: tuple[Key, ...], namespace: str = "") -> Entries:
        """Give the objects of some keys, as far as they are there and in the namespace."""
        found = [self.get(key) for key in keys if not namespace or key.namespace == namespace]
        return [entry for entry in found if entry is not None]

    # What is delivered

    def delivered(self, namespace: str = "") -> Entries:
        """Give what is delivered, without own writes."""
        groups = [self._delivered.get(namespace, {})] if namespace else list(self._delivered.values())
        return [entry for names in groups for entry in list(names.values())]

    def delivered_at(self, key: Key) -> Entry | None:
        """Give what is delivered of a key."""
        names = self._delivered.get(key.namespace)
        return None if names is None else names.get(key.name)

    def put(self, entry: Entry) -> Change | None:
        """Take a state that a watch told; None when it is no news."""
        old = self.delivered_at(entry.key)
        if not self._is_news(entry, old):
            return None
        writer = self._ours.writer_of(entry.version)  # before the horizon reaches it, and it is forgotten
        self._deliver(entry.key, old, entry, entry.version)
        return Change(entry.key, old, entry, writer)

    def remove(self, last: Entry) -> Change | None:
        """Take the last state of an object that is gone; None when that is no news."""
        old = self.delivered_at(last.key)
        if old is None or not self._is_end_of(old, last):
            self.advance(last.version)
            return None
        writer = self._ours.deleter_of(old.uid) or self._ours.writer_of(last.version)
        self._deliver(last.key, old, None, last.version)
        return Change(last.key, last if last.uid == old.uid else old, None, writer)

    def advance(self, version: Version) -> None:
        """Move the horizon, and let go of what of ours it has reached [5]."""
        if isinstance(version, str):
            self.version = version or self.version
        elif version > self._horizon:
            self._horizon = version
            self.version = str(version)
            for key, uid in self._ours.reached(version):
                before = self.get(key)
                self._ours.settle(key, uid, horizon=version, delivered_uid=self._delivered_uid(key))
                self.indexes.move(before, self.get(key))

    # Lists

    @property
    def staging(self) -> bool:
        """Whether a list is being read."""
        return self._staged is not None

    def begin(self) -> None:
        """Start a list, and forget one that was not finished."""
        self._staged = {}
        self.indexes.begin(first=not self._delivered)

    def stage(self, key: Key, entry: Entry | None) -> None:
        """Take what a list has, or no longer has."""
        assert self._staged is not None
        names = self._staged.setdefault(key.namespace, {})
        self.indexes.stage(names.get(key.name), entry)
        if entry is not None:
            names[key.name] = entry
        else:
            names.pop(key.name, None)

    def swap(self, version: str) -> list[Change]:
        """End the list: put the new state in the place of the old one, and give every difference.

        Raises: Expired when the list is older than the horizon; nothing has changed then.
        """
        staged, self._staged = self._staged or {}, None
        self._check_age(version)
        first = not self._delivered
        changes = list(_differences(self._delivered, staged))
        before = [self.get(change.key) for change in changes] if self.indexes and not first else []
        self._delivered = {namespace: names for namespace, names in staged.items() if names}
        self._ours.replaced(changes, number_of(version) or 0, self._delivered_uid)
        if first:
            self.indexes.swap({key: self.get(key) for key in self._ours.touched()}, self.delivered_at)
        for change, was in zip(changes, before, strict=False):
            self.indexes.move(was, self.get(change.key))
        self.advance(self._comparable(version))
        return changes

    def missed(self, version: str) -> Entries:
        """Give what only own writes told of, and the list that ends at this version does not have [11]."""
        number = number_of(version)
        if number is None or self._staged is None or not self._ordered:
            return []
        staged = self._staged
        return [
            entry
            for entry in self._ours.written_until(number)
            if entry.uid != self._delivered_uid(entry.key)
            and entry.uid != _uid(staged.get(entry.key.namespace, {}).get(entry.key.name))
        ]

    def is_missed(self, entry: Entry) -> bool:
        """Tell whether an object of an own write is gone, and nobody has been told [11]."""
        if not self._ordered or isinstance(entry.version, str):
            return False
        return entry.uid != self._delivered_uid(entry.key) and not self._ours.is_gone(entry.uid)

    def rewrite(self, change: Callable[[Entry], Entry]) -> None:
        """Hold what is delivered in another form."""
        for names in self._delivered.values():
            for name, entry in list(names.items()):
                names[name] = change(entry)

    # Own writes

    @property
    def pending(self) -> int:
        """How much of ours delivered has not reached."""
        return len(self._ours)

    def is_ahead(self, version: Version) -> bool:
        """Tell whether delivered has not reached this version; never where versions are not in order [4]."""
        return self._ordered and isinstance(version, int) and version > self._horizon

    def sign(self, version: Version, writer: Any) -> None:
        """Note that a version is purely ours [8]."""
        self._ours.sign(int(version), writer)

    def write(self, key: Key, version: Version, entry: Entry | None) -> None:
        """Take what an own write left at a version, None for nothing in the scope [5]."""
        before = self.get(key)
        self._ours.write(key, int(version), entry)
        self.indexes.move(before, self.get(key))

    def bury(self, key: Key, uid: str, version: int, writer: Any) -> None:
        """Take an own delete; `version` is one that the object had, 0 when none is known [6]."""
        delivered = self.delivered_at(key)
        if not self._ordered or not uid:
            return
        if delivered is not None and delivered.uid == uid:
            version = max(version, int(delivered.version))
        elif self._ours.was_removed(uid, writer) or 0 < version <= self._horizon:
            return
        before = self.get(key)
        self._ours.bury(key, uid, version=version, writer=writer)
        if version > self._horizon:
            # Whatever had the name before is gone as well.
            self._ours.write(key, version, None)
        self.indexes.move(before, self.get(key))

    # How it is done

    def _is_news(self, entry: Entry, old: Entry | None) -> bool:
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

    def _deliver(self, key: Key, old: Entry | None, new: Entry | None, version: Version) -> None:
        before = self.get(key) if self.indexes else None
        if new is not None:
            self._delivered.setdefault(key.namespace, {})[key.name] = new
            self._ours.bury_again(new)
        else:
            self._discard(key)
        if old is not None and (new is None or new.uid != old.uid):
            self._ours.removed(old.uid, version)
        if self.indexes:
            self.indexes.move(before, self.get(key))
        self.advance(version)

    def _discard(self, key: Key) -> None:
        names = self._delivered[key.namespace]
        del names[key.name]
        if not names:
            del self._delivered[key.namespace]

    def _comparable(self, version: str) -> Version:
        number = number_of(version) if self._ordered else None
        return version if number is None else number

    def _delivered_uid(self, key: Key) -> str:
        return _uid(self.delivered_at(key))

    def _check_age(self, version: str) -> None:
        number = number_of(version)
        if number is None:
            self._lose_order()
        if not self._ordered or number is None or number >= self._horizon:
            self._refused = 0
            return
        self._refused += 1
        if self._refused < _REFUSALS:
            words = f"list at version {version} is older than {self.version}, which is delivered already"
            raise Expired(words, verb="list", kind=self._kind.kind)
        facts = {"kind": str(self._kind), "version": version, "delivered": self.version}
        _log.warning("The server's history has started over: taking an older list", extra=facts)
        self._refused = 0
        self._horizon = -1
        self._forget_ours()

    def _lose_order(self) -> None:
        """Versions are no numbers after all: from now on they compare for equality only [4]."""
        if self._ordered:
            self._ordered = False
            facts = {"kind": str(self._kind)}
            _log.warning("resourceVersions are no numbers: own writes are seen late", extra=facts)
            self._forget_ours()

    def _forget_ours(self) -> None:
        for key in self._ours.touched():
            self.indexes.move(self.get(key), self.delivered_at(key))
        self._ours.clear()


def _uid(entry: Entry | None) -> str:
    return "" if entry is None else entry.uid


def _differences(old: Objects, new: Objects) -> Iterator[Change]:
    """Compare two states; what is the same entry in both is no difference."""
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
